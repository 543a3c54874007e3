#include "text/text_guard.h"

#include <gtest/gtest.h>

namespace triptych {
namespace {

const std::vector<std::string> kReserved = {"<image>", "<s>", "[INST]", "§"};

std::string marked(const ReservedStrings& reserved, std::string_view text, bool possible) {
  const auto bits = possible ? reserved.possible_matches(text) : reserved.whole_matches(text);
  std::string out;
  for (const bool bit : bits) out += bit ? '^' : '.';
  return out;
}

TEST(ReservedStrings, FindsWholeAndPartialMatches) {
  const ReservedStrings reserved(kReserved);
  EXPECT_EQ(marked(reserved, "a <image> b", false), "..^^^^^^^..");
  EXPECT_EQ(marked(reserved, "<<s>s>", false), ".^^^..");
  EXPECT_EQ(marked(reserved, "plain text", true), "..........");
  EXPECT_EQ(marked(reserved, "x <ima", true), "..^^^^");
  EXPECT_EQ(marked(reserved, "x <ima \n", true), "..^^^^..");
  EXPECT_EQ(marked(reserved, "ge> x", true), "^^^..");
  EXPECT_EQ(marked(reserved, "  ge> x", true), "..^^^..");
  EXPECT_EQ(marked(reserved, "mag", true), "^^^");
  EXPECT_EQ(marked(reserved, "x <ima", false), "......");
  EXPECT_EQ(marked(reserved, "", true), "");
  EXPECT_EQ(marked(reserved, " ", true), ".");
}

TEST(TextGuard, MarksComeOutAsRanges) {
  const ReservedStrings reserved(kReserved);
  const auto guard = TextGuard::make(&reserved, {"say <image> §"});
  ASSERT_TRUE(guard.is_ok());
  const std::string text = guard->mark_text("say <image> §");
  EXPECT_NE(text, "say <image> §");
  const RenderedPrompt prompt = guard->unmark("<s>" + text + "<image>");
  EXPECT_EQ(prompt.text, "<s>say <image> §<image>");
  ASSERT_EQ(prompt.plain.size(), 2u);
  EXPECT_EQ(prompt.plain[0].begin, 7u);
  EXPECT_EQ(prompt.plain[0].end, 14u);
  EXPECT_EQ(prompt.plain[1].begin, 15u);
  EXPECT_EQ(prompt.plain[1].end, 17u);
}

TEST(TextGuard, TakesAMarkThatNoInputHas) {
  const ReservedStrings reserved(kReserved);
  std::string all;
  for (int last = 0x90; last < 0xAF; ++last) {
    all += "\xEF\xB7";
    all += static_cast<char>(last);
  }
  const auto guard = TextGuard::make(&reserved, {all, "<s>"});
  ASSERT_TRUE(guard.is_ok());
  const RenderedPrompt prompt = guard->unmark(guard->mark_text(all + "<s>"));
  EXPECT_EQ(prompt.text, all + "<s>");
  EXPECT_EQ(prompt.plain.size(), 1u);
  all += "\xEF\xB7\xAF";
  EXPECT_FALSE(TextGuard::make(&reserved, {all}).is_ok());
}

TEST(TextGuard, MarksJsonStringsAndKeys) {
  const ReservedStrings reserved(kReserved);
  const auto guard = TextGuard::make(&reserved, {});
  const auto json = parse_json(R"({"<s>": ["<image>", 1, null], "type": "ima"})");
  const std::string dump = guard->mark_json(*json).dump();
  const RenderedPrompt prompt = guard->unmark(dump);
  EXPECT_EQ(prompt.text, json->dump());
  EXPECT_EQ(prompt.plain.size(), 2u);
}

TEST(FindInvalidUtf8, FindsTheFirstBadByte) {
  EXPECT_EQ(find_invalid_utf8("aé日😀"), std::string::npos);
  EXPECT_EQ(find_invalid_utf8("a\xff"), 1u);
  EXPECT_EQ(find_invalid_utf8("ab\xc3"), 2u);
  EXPECT_EQ(find_invalid_utf8("\xc0\x80"), 0u);
  EXPECT_EQ(find_invalid_utf8("\xed\xa0\x80"), 0u);
  EXPECT_EQ(find_invalid_utf8("\xf4\x90\x80\x80"), 0u);
  EXPECT_EQ(find_invalid_utf8("\xe0\x80\x80"), 0u);
  EXPECT_EQ(find_invalid_utf8("\x80"), 0u);
}

}  // namespace
}  // namespace triptych
