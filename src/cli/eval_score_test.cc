#include "cli/eval_score.h"

#include <gtest/gtest.h>

namespace triptych::cli {
namespace {

TEST(ItemScore, CountsWhatBothListsNameOverTheLongerOne) {
  EXPECT_DOUBLE_EQ(item_score("a red ring, a blue star.", "a red ring, a blue star."), 1);
  EXPECT_DOUBLE_EQ(item_score("a red ring", "a red ring, a blue star."), 0.5);
  EXPECT_DOUBLE_EQ(item_score("a red ring, a red ring", "a red ring, a blue star."), 0.5);
  EXPECT_DOUBLE_EQ(item_score("a blue star, a red ring", "a red ring, a blue star."), 1);
  EXPECT_DOUBLE_EQ(item_score("", "a red ring."), 0);
}

TEST(ItemScore, ARowEndsAnItem) {
  EXPECT_DOUBLE_EQ(
      item_score("Row 1: a red ring. Row 2: a blue star.", "Row 1: a red ring. Row 2: a blue bar."),
      0.5);
}

TEST(WilsonInterval, HoldsTheShareAndStaysInRange) {
  const auto [low, high] = wilson_interval(95, 100);
  EXPECT_NEAR(low, 0.8882, 1e-4);
  EXPECT_NEAR(high, 0.9785, 1e-4);
  EXPECT_EQ(wilson_interval(0, 0), (std::pair<double, double>(0, 1)));
  EXPECT_DOUBLE_EQ(wilson_interval(10, 10).second, 1);
  EXPECT_DOUBLE_EQ(wilson_interval(0, 10).first, 0);
}

}  // namespace
}  // namespace triptych::cli
