# cmake -DPAGE=index.html -DPOLICY=policy.txt -DOUTPUT=x.cc -P embed_page.cmake
# Writes both files' bytes as arrays, which every compiler takes at any length.
set(code "#include \"server/playground.h\"\n\nnamespace triptych {\nnamespace {\n")
foreach(name PAGE POLICY)
  file(READ ${${name}} bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND code "constexpr char k${name}[] = {${bytes}};\n")
endforeach()
string(APPEND code "}  // namespace\n\n"
       "const std::string_view kPlaygroundPage(kPAGE, sizeof(kPAGE));\n"
       "const std::string_view kPlaygroundPolicy(kPOLICY, sizeof(kPOLICY));\n\n"
       "}  // namespace triptych\n")
file(WRITE ${OUTPUT} "${code}")
