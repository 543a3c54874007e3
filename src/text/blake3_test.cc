#include "text/blake3.h"

#include <gtest/gtest.h>

namespace triptych {
namespace {

// Digests of the BLAKE3 paper's reference implementation.
constexpr const char* kEmpty = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
constexpr const char* kAbc = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";

TEST(Blake3, KnownDigests) {
  EXPECT_EQ(to_hex(blake3("")), kEmpty);
  EXPECT_EQ(to_hex(blake3("abc")), kAbc);
}

TEST(Blake3, StreamEqualsWhole) {
  Blake3Hasher hasher;
  EXPECT_EQ(to_hex(hasher.hash()), kEmpty);
  hasher.update("a");
  hasher.update("bc");
  EXPECT_EQ(to_hex(hasher.hash()), kAbc);
  Blake3Hasher moved = std::move(hasher);
  moved.update("d");
  EXPECT_EQ(moved.hash(), blake3("abcd"));
}

TEST(Blake3, FramesKeepPartsApart) {
  Blake3Hasher one, other;
  one.update_framed("ab");
  one.update_framed("c");
  other.update_framed("a");
  other.update_framed("bc");
  EXPECT_NE(one.hash(), other.hash());
}

}  // namespace
}  // namespace triptych
