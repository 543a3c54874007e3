#include "observe/timeline.h"

#include <gtest/gtest.h>

namespace triptych {
namespace {

TEST(StageClock, StagesFollowEachOtherAndSumToAllOfTheTime) {
  StageClock clock(Stage::kQueue, 10);
  clock.enter(Stage::kProcess, 12);
  clock.enter(Stage::kProcess, 13);
  clock.enter(Stage::kMediaDecode, 15);
  clock.enter(Stage::kProcess, 20);
  clock.end(21);
  EXPECT_EQ(clock.spans().size(), 4u);
  EXPECT_EQ(clock.ms(Stage::kQueue), 2);
  EXPECT_EQ(clock.ms(Stage::kProcess), 4);
  EXPECT_EQ(clock.ms(Stage::kMediaDecode), 5);
  EXPECT_EQ(clock.ms(Stage::kDecode), 0);
  EXPECT_EQ(clock.start_ms(), 10);
  double sum = 0;
  for (size_t i = 0; i < kStages; ++i) sum += clock.ms(static_cast<Stage>(i));
  EXPECT_EQ(sum, clock.total_ms());
}

TEST(Timeline, TheDeepestCacheIsNamed) {
  Timeline timeline;
  EXPECT_EQ(cache_tier_name(timeline.cache_tier()), "none");
  timeline.cached_tokens = 2;
  EXPECT_EQ(cache_tier_name(timeline.cache_tier()), "prefix") << "a text";
  timeline.media_tokens = 576;
  EXPECT_EQ(cache_tier_name(timeline.cache_tier()), "none") << "a few words spare no picture";
  timeline.media_in_encoder = 1;
  EXPECT_EQ(cache_tier_name(timeline.cache_tier()), "encoder");
  timeline.media_in_prefix = 1;
  EXPECT_EQ(cache_tier_name(timeline.cache_tier()), "prefix");
}

}  // namespace
}  // namespace triptych
