#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

namespace triptych {
namespace {

/// Feeds `text` in pieces of `n` bytes and returns everything that was sent.
std::string run(StopStrings& stop, std::string_view text, size_t n) {
  std::string sent;
  for (size_t i = 0; i < text.size(); i += n) sent += stop.push(text.substr(i, n));
  return sent + stop.flush();
}

TEST(StopStrings, SendsNothingOfAStopString) {
  for (size_t n = 1; n <= 26; ++n) {
    StopStrings stop({"DEFGHIJ"});
    EXPECT_EQ(run(stop, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", n), "ABC") << n;
    EXPECT_TRUE(stop.stopped());
    EXPECT_EQ(stop.matched(), "DEFGHIJ");
  }
}

TEST(StopStrings, EarliestWinsAndTheLongestOfTwoThatEndTogether) {
  for (size_t n = 1; n <= 26; ++n) {
    StopStrings stop({"XYZ", "YZ"});
    EXPECT_EQ(run(stop, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", n), "ABCDEFGHIJKLMNOPQRSTUVW") << n;
    EXPECT_EQ(stop.matched(), "XYZ");
    StopStrings early({"MNO", "DE"});
    EXPECT_EQ(run(early, "ABCDEFGHIJKLMNOP", n), "ABC") << n;
    StopStrings nested({"ABCDE", "CD"});
    EXPECT_EQ(run(nested, "xABCDE", n), "xAB") << n;
  }
}

TEST(StopStrings, HeldTextComesOutWithoutAMatch) {
  StopStrings stop({"DEFGHIJ"});
  EXPECT_EQ(stop.push("ABCDEF"), "ABC");
  EXPECT_EQ(stop.push("X"), "DEFX");
  EXPECT_EQ(stop.push("yD"), "y");
  EXPECT_EQ(stop.flush(), "D");
  EXPECT_FALSE(stop.stopped());
}

TEST(StopStrings, OverlappingStartsAreFound) {
  for (size_t n = 1; n <= 6; ++n) {
    StopStrings stop({"aab"});
    EXPECT_EQ(run(stop, "aaaaab!", n), "aaa") << n;
  }
}

TEST(StopStrings, NothingAfterAMatch) {
  StopStrings stop({"."});
  EXPECT_EQ(stop.push("one. two"), "one");
  EXPECT_EQ(stop.push("three"), "");
  EXPECT_EQ(stop.flush(), "");
}

TEST(StopStrings, WithoutStopsTextPasses) {
  StopStrings stop({"", ""});
  EXPECT_EQ(stop.push("any"), "any");
  EXPECT_EQ(stop.flush(), "");
  EXPECT_EQ(stop.matched(), "");
}

TEST(StopStrings, CutsDoNotMatter) {
  std::mt19937 random(3);
  const auto word = [&](size_t n) {
    std::string out;
    for (size_t i = 0; i < n; ++i) out += static_cast<char>('a' + random() % 2);
    return out;
  };
  for (int round = 0; round < 500; ++round) {
    const std::vector<std::string> stops = {word(1 + random() % 5), word(2 + random() % 5)};
    const std::string text = word(20);
    StopStrings whole(stops);
    const std::string expected = run(whole, text, text.size());
    StopStrings pieces(stops);
    EXPECT_EQ(run(pieces, text, 1 + random() % 4), expected) << stops[0] << " " << stops[1];
    EXPECT_EQ(pieces.matched(), whole.matched());
  }
}

}  // namespace
}  // namespace triptych
