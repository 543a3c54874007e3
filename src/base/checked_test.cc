#include "base/checked.h"

#include <gtest/gtest.h>

namespace triptych {
namespace {

constexpr uint64_t kMax = UINT64_MAX;

TEST(Checked, AddStopsAtTheEndOfTheRange) {
  EXPECT_EQ(checked_add(2, 3), 5u);
  EXPECT_EQ(checked_add(kMax, 0), kMax);
  EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_add(kMax / 2 + 1, kMax / 2 + 1), std::nullopt);
}

TEST(Checked, MultiplyStopsAtTheEndOfTheRange) {
  EXPECT_EQ(checked_mul(1u << 31, 1u << 31), uint64_t{1} << 62);
  EXPECT_EQ(checked_mul(0, kMax), 0u);
  EXPECT_EQ(checked_mul(kMax, 1), kMax);
  EXPECT_EQ(checked_mul(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
}

TEST(Checked, ProductOfManyFactors) {
  EXPECT_EQ(checked_product({}), 1u);
  EXPECT_EQ(checked_product({3, 4, 5}), 60u);
  EXPECT_EQ(checked_product({kMax, 2, 0}), std::nullopt) << "overflow on the way is overflow";
  EXPECT_EQ(checked_product({0, kMax, kMax}), 0u);
}

TEST(Checked, CeilingAndRounding) {
  EXPECT_EQ(ceil_div(0, 16), 0);
  EXPECT_EQ(ceil_div(1, 16), 1);
  EXPECT_EQ(ceil_div(16, 16), 1);
  EXPECT_EQ(ceil_div(17, 16), 2);
  EXPECT_EQ(round_up(0, 64), 0);
  EXPECT_EQ(round_up(1, 64), 64);
  EXPECT_EQ(round_up(64, 64), 64);
}

}  // namespace
}  // namespace triptych
