#include "engine/token_draw.h"

#include <gtest/gtest.h>

#include <set>

namespace triptych {
namespace {

using Block = std::array<uint32_t, 4>;

TEST(Philox, GivesThePublishedAnswers) {  // kat_vectors of Random123
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(TokenUniform, DependsOnSeedStreamAndPositionAlone) {
  std::set<double> seen;
  for (uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, ~uint64_t{0}}) {
    for (uint32_t stream : {0u, 1u, 127u}) {
      for (uint64_t position : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
        const double u = token_uniform(seed, stream, position);
        EXPECT_EQ(u, token_uniform(seed, stream, position));
        EXPECT_GE(u, 0);
        EXPECT_LT(u, 1);
        seen.insert(u);
      }
    }
  }
  EXPECT_EQ(seen.size(), 4u * 3 * 3);
}

TEST(TokenUniform, FillsTheUnitIntervalEvenly) {
  constexpr int kBins = 64;
  constexpr int kDraws = 64000;
  int counts[kBins] = {};
  for (int i = 0; i < kDraws; ++i) {
    ++counts[static_cast<int>(token_uniform(7, 3, static_cast<uint64_t>(i)) * kBins)];
  }
  double chi_square = 0;
  for (int count : counts) {
    const double d = count - double{kDraws} / kBins;
    chi_square += d * d / (double{kDraws} / kBins);
  }
  EXPECT_LT(chi_square, 103.4);  // 99.9 % point of 63 degrees of freedom
}

TEST(SeedSource, NoTwoAlike) {
  SeedSource a;
  SeedSource b;
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    seen.insert(a.next());
    seen.insert(b.next());
  }
  EXPECT_EQ(seen.size(), 2000u);
}

}  // namespace
}  // namespace triptych
