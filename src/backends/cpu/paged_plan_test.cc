#include "backends/cpu/paged_plan.h"

#include <gmock/gmock.h>

#include <vector>

namespace triptych {
namespace {

using testing::ElementsAre;

/// Decode rows with these shared pages; the sequences of each item of the first KV head.
std::vector<int64_t> run_lengths(const std::vector<int64_t>& shared_pages, int64_t threads,
                                 int64_t n_heads = 4) {
  std::vector<SequenceRows> sequences;
  for (const int64_t n : shared_pages) {
    sequences.push_back({.n_rows = 1, .kv_len = 600, .shared_pages = n});
  }
  PagedAttentionArgs args{};
  args.n_heads = n_heads;
  args.cache.n_kv_heads = 2;
  args.sequences = sequences.data();
  args.n_sequences = static_cast<int64_t>(sequences.size());
  const PagedPlan plan = plan_items(args, threads);
  std::vector<int64_t> out;
  for (int64_t i = 0; i < plan.n_items; ++i) {
    const PagedItem item = item_at(args, plan, i);
    if (item.kv_head == 0 && item.first_head == 0) out.push_back(item.run.n);
  }
  return out;
}

TEST(PagedPlan, NeighboursThatShareBlocksAreTakenTogether) {
  EXPECT_THAT(run_lengths({0, 36, 36, 36}, 1), ElementsAre(4));
  EXPECT_THAT(run_lengths({0, 36, 0, 36}, 1), ElementsAre(2, 2));
  EXPECT_THAT(run_lengths({0, 3, 3, 3}, 1), ElementsAre(1, 1, 1, 1)) << "less than a block";
  EXPECT_THAT(run_lengths({36, 0}, 1), ElementsAre(1, 1)) << "nobody is before the first";
}

TEST(PagedPlan, ALittleInCommonDoesNotHideMuch) {
  EXPECT_THAT(run_lengths({0, 4, 36, 36}, 1), ElementsAre(2, 2));
  EXPECT_THAT(run_lengths({0, 36, 4, 36}, 1), ElementsAre(2, 2));
  EXPECT_THAT(run_lengths({0, 36, 32, 40}, 1), ElementsAre(4));
}

TEST(PagedPlan, EveryThreadHasAnItem) {
  const std::vector<int64_t> shared(16, 36);
  EXPECT_THAT(run_lengths(shared, 2), ElementsAre(16));
  EXPECT_THAT(run_lengths(shared, 8), ElementsAre(4, 4, 4, 4));
  EXPECT_EQ(run_lengths(shared, 32).size(), 16u);
  EXPECT_EQ(run_lengths(std::vector<int64_t>(1, 0), 8).size(), 1u);
}

TEST(PagedPlan, ATileHoldsAllRowsOfAnItem) {
  EXPECT_THAT(run_lengths(std::vector<int64_t>(7, 36), 1, 2 * 32), ElementsAre(3, 3, 1));
}

}  // namespace
}  // namespace triptych
