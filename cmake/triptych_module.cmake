# The two helpers that every folder uses, and the compile flags of our own code.

find_program(TRIPTYCH_CCACHE ccache)
if(TRIPTYCH_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${TRIPTYCH_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TRIPTYCH_CCACHE})
endif()

# x86-64-v2 is the floor for all code; kernels for higher levels set their own flags per file and
# are chosen at run time (backends/cpu).
add_library(triptych_flags INTERFACE)
target_include_directories(triptych_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(triptych_flags INTERFACE -march=x86-64-v2 -Wall -Wextra -Wshadow
                       -Wnon-virtual-dtor -Wno-missing-field-initializers -Werror
                       -fno-math-errno)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 warns about overlapping copies inside std::string itself (GCC bug 105651).
  target_compile_options(triptych_flags INTERFACE -Wno-restrict)
endif()
target_link_options(triptych_flags INTERFACE -Wl,--gc-sections)
target_compile_options(triptych_flags INTERFACE -ffunction-sections -fdata-sections)
if(TRIPTYCH_SANITIZE)
  target_compile_options(triptych_flags INTERFACE -fsanitize=${TRIPTYCH_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(triptych_flags INTERFACE -fsanitize=${TRIPTYCH_SANITIZE})
  if(TRIPTYCH_FUZZ)
    target_compile_options(triptych_flags INTERFACE -fsanitize=fuzzer-no-link)
  endif()
endif()

# triptych_module(NAME ops DEPS core base SOURCES a.cc b.cc [SYSTEM_DEPS fmt::fmt])
# One static library a folder: triptych_<NAME>. DEPS are other modules, public; SYSTEM_DEPS are
# third-party targets, private, so that no other module can include their headers by accident.
function(triptych_module)
  cmake_parse_arguments(M "" "NAME" "DEPS;SYSTEM_DEPS;SOURCES" ${ARGN})
  set(target triptych_${M_NAME})
  add_library(${target} STATIC ${M_SOURCES})
  target_link_libraries(${target} PUBLIC triptych_flags)
  foreach(dep ${M_DEPS})
    target_link_libraries(${target} PUBLIC triptych_${dep})
  endforeach()
  if(M_SYSTEM_DEPS)
    target_link_libraries(${target} PRIVATE ${M_SYSTEM_DEPS})
  endif()
endfunction()

# triptych_test(NAME base_test DEPS base [SOURCES x_test.cc ...] [SYSTEM_DEPS ...] [TIMEOUT seconds])
# One gtest binary a folder, by default of all its *_test.cc; each TEST is a ctest test, run from the
# source root so that tests can name files as the repository does.
function(triptych_test)
  if(NOT TRIPTYCH_TESTS)
    return()
  endif()
  cmake_parse_arguments(T "" "NAME;TIMEOUT" "DEPS;SYSTEM_DEPS;SOURCES" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  if(NOT T_SOURCES)
    file(GLOB T_SOURCES CONFIGURE_DEPENDS *_test.cc)
  endif()
  if(NOT T_SOURCES)
    return()
  endif()
  add_executable(${T_NAME} ${T_SOURCES})
  target_link_libraries(${T_NAME} PRIVATE triptych_flags GTest::gmock_main GTest::gtest
                        ${T_SYSTEM_DEPS})
  foreach(dep ${T_DEPS})
    target_link_libraries(${T_NAME} PRIVATE triptych_${dep})
  endforeach()
  gtest_discover_tests(${T_NAME} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${T_TIMEOUT})
endfunction()
