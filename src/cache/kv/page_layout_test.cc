#include "cache/kv/page_layout.h"

#include <gtest/gtest.h>

#include <random>

#include "ops/attention.h"

namespace triptych {
namespace {

using Begins = std::vector<int32_t>;

PageLayout plan(int64_t n_tokens, const std::vector<MediaRun>& runs = {}) {
  Result<PageLayout> layout = PageLayout::plan(n_tokens, runs);
  EXPECT_TRUE(layout.is_ok()) << layout.status().message();
  return std::move(layout).value();
}

TEST(PageLayout, TextFillsPagesOfSixteen) {
  EXPECT_EQ(plan(0).page_begin(), (Begins{0}));
  EXPECT_EQ(plan(16).page_begin(), (Begins{0, 16}));
  EXPECT_EQ(plan(35).page_begin(), (Begins{0, 16, 32, 35}));
  EXPECT_TRUE(plan(35).is_closed(1));
  EXPECT_FALSE(plan(35).is_closed(2));
}

TEST(PageLayout, MediaStartAndEndOnPageBoundaries) {
  const PageLayout layout = plan(50, {{.position = 5, .length = 20},
                                      {.position = 25, .length = 3, .modality = Modality::kAudio}});
  EXPECT_EQ(layout.page_begin(), (Begins{0, 5, 21, 25, 28, 44, 50}));
  EXPECT_EQ(layout.modality(0), Modality::kText);
  EXPECT_EQ(layout.modality(2), Modality::kImage);
  EXPECT_EQ(layout.index_in_run(2), 1);
  EXPECT_EQ(layout.modality(3), Modality::kAudio);
  EXPECT_EQ(layout.run(3), 1);
  EXPECT_EQ(layout.run(4), -1);
  EXPECT_TRUE(layout.is_closed(0));  // partly filled, but a picture follows
  EXPECT_FALSE(layout.is_closed(5));
  EXPECT_EQ(layout.n_wasted(), 11 + 12 + 13);
}

TEST(PageLayout, TextBehindMediaAtTheEndStartsANewPage) {
  PageLayout layout = plan(5, {{.position = 0, .length = 5}});
  EXPECT_TRUE(layout.is_closed(0));
  ASSERT_TRUE(layout.extend(1).is_ok());
  EXPECT_EQ(layout.page_begin(), (Begins{0, 5, 6}));
  ASSERT_TRUE(layout.extend(17).is_ok());
  EXPECT_EQ(layout.page_begin(), (Begins{0, 5, 21, 23}));
}

TEST(PageLayout, CutsBackToWholeMedia) {
  const PageLayout layout = plan(60, {{.position = 5, .length = 40}});
  EXPECT_EQ(layout.whole_runs(0), 0);
  EXPECT_EQ(layout.whole_runs(1), 1);
  EXPECT_EQ(layout.whole_runs(2), 1);
  EXPECT_EQ(layout.whole_runs(3), 1);
  EXPECT_EQ(layout.whole_runs(4), 4);
  EXPECT_EQ(layout.whole_runs(5), 5);
}

TEST(PageLayout, RefusesRunsThatDoNotFit) {
  const std::vector<std::vector<MediaRun>> wrong = {
      {{.position = 0, .length = 0}},
      {{.position = -1, .length = 2}},
      {{.position = 5, .length = 6}},
      {{.position = 5, .length = INT64_MAX}},
      {{.position = 4, .length = 3}, {.position = 6, .length = 1}},
      {{.position = 6, .length = 1}, {.position = 2, .length = 1}}};
  for (const std::vector<MediaRun>& runs : wrong) {
    EXPECT_EQ(PageLayout::plan(10, runs).status().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(PageLayout::plan(int64_t{1} << 31, {}).status().code(), StatusCode::kOutOfRange);
  PageLayout layout = plan(10);
  EXPECT_EQ(layout.extend(INT32_MAX - 9).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(layout.n_tokens(), 10);
}

TEST(PageLayout, EveryTokenHasOneSlotAndWasteIsBounded) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<MediaRun> runs;
    int64_t n = 0;
    const int64_t n_runs = random() % 5;
    for (int64_t i = 0; i < n_runs; ++i) {
      n += random() % 40;
      runs.push_back({.position = n, .length = 1 + static_cast<int64_t>(random() % 60)});
      n += runs.back().length;
    }
    n += random() % 40;
    PageLayout layout = plan(n, runs);
    for (int64_t p = 0; p < n; ++p) {
      const int64_t page = layout.page_of(p);
      ASSERT_GE(p, layout.begin(page));
      ASSERT_LT(p - layout.begin(page), std::min(kPageTokens, layout.n_filled(page)));
    }
    for (size_t i = 0; i < runs.size(); ++i) {
      const int64_t page = layout.page_of(runs[i].position);
      ASSERT_EQ(layout.begin(page), runs[i].position);
      ASSERT_EQ(layout.run(page), static_cast<int64_t>(i));
    }
    ASSERT_LE(layout.n_wasted(), 15 * (2 * n_runs + 1));
    // Growing by text token by token gives what planning the longer sequence gives.
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(layout.extend(1).is_ok());
    ASSERT_EQ(layout.page_begin(), plan(n + 20, runs).page_begin());
  }
}

}  // namespace
}  // namespace triptych
