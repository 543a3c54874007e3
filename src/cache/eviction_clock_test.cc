#include "cache/eviction_clock.h"

#include <gtest/gtest.h>

namespace triptych {
namespace {

TEST(EvictionClock, DearThingsRankAboveCheapOnes) {
  EvictionClock clock;
  const EvictionRank dear = clock.touch(100, 10);
  const EvictionRank cheap = clock.touch(100, 1000);
  EXPECT_LT(cheap, dear);
}

TEST(EvictionClock, EqualThingsLeaveInOrderOfUse) {
  EvictionClock clock;
  const EvictionRank first = clock.touch(5, 5);
  const EvictionRank second = clock.touch(7, 7);
  EXPECT_LT(first, second);
  EXPECT_LT(second, clock.touch(5, 5));
}

TEST(EvictionClock, WhatIsUsedOvertakesWhatIsDearAndForgotten) {
  EvictionClock clock;
  const EvictionRank dear = clock.touch(1000, 10);  // 100 a byte, used once
  EvictionRank cheap = clock.touch(10, 10);
  int n = 0;
  while (cheap < dear) {
    clock.evicted(cheap);
    cheap = clock.touch(10, 10);
    ASSERT_LT(++n, 200);
  }
  EXPECT_NEAR(n, 99, 2);
}

TEST(EvictionClock, ThingsWithoutBytesHaveARank) {
  EvictionClock clock;
  EXPECT_EQ(clock.touch(3, 0).value, 3);
}

}  // namespace
}  // namespace triptych
