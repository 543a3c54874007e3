#include "cache/kv/prefix_index.h"

#include <gtest/gtest.h>

#include "cache/test_kv_fixture.h"

namespace triptych {
namespace {

using test::counting;
using test::KvParts;
using test::layout_of;

/// Keys of `n` pages of text counting up from `first`.
PrefixChain chain_of(const KvParts& kv, int32_t first, int64_t n) {
  PrefixChain chain(kv.root);
  const int64_t n_tokens = n * kPageTokens;
  EXPECT_TRUE(chain.extend(layout_of(n_tokens), counting(first, static_cast<size_t>(n_tokens)), {})
                  .is_ok());
  return chain;
}

/// Publishes a chain's pages from the pool and leaves the index as their only holder.
std::vector<int32_t> fill(KvParts& kv, const PrefixChain& chain) {
  std::vector<int32_t> pages = *kv.index.allocate(chain.size());
  for (int64_t i = 0; i < chain.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    const Result<int32_t> held = kv.index.publish({.key = chain.key(i),
                                                   .parent = chain.parent(i),
                                                   .page = pages[at],
                                                   .page_before = i == 0 ? -1 : pages[at - 1],
                                                   .position = i * kPageTokens,
                                                   .n_tokens = kPageTokens});
    EXPECT_TRUE(held.is_ok());
    pages[at] = *held;
  }
  for (const int32_t page : pages) kv.pool.drop(page);
  return pages;
}

TEST(PrefixIndex, FindsTheLongestRunAndSharesIt) {
  KvParts kv(8);
  const PrefixChain chain = chain_of(kv, 0, 3);
  const std::vector<int32_t> pages = fill(kv, chain);
  EXPECT_EQ(kv.index.longest_run(kv.root, chain.keys()), 3);
  EXPECT_EQ(kv.pool.references(pages[0]), 1);
  const std::vector<int32_t> shared = kv.index.match(kv.root, chain.keys());
  EXPECT_EQ(shared, pages);
  EXPECT_EQ(kv.pool.references(pages[0]), 2);
  EXPECT_EQ(kv.index.stats().pages_hit[0], 3);
  EXPECT_EQ(kv.index.stats().tokens_saved, 48);
  EXPECT_TRUE(kv.index.match(kv.root, chain_of(kv, 1, 3).keys()).empty());
  EXPECT_EQ(kv.index.stats().lookups, 2);
  EXPECT_EQ(kv.index.stats().pages_asked, 6);
  for (const int32_t page : shared) kv.pool.drop(page);
  EXPECT_TRUE(kv.check({}).is_ok());
}

TEST(PrefixIndex, DoesNotHandOutAPageBehindAnotherParent) {
  KvParts kv(8);
  const PrefixChain chain = chain_of(kv, 0, 2);
  fill(kv, chain);
  const PrefixKey other = root_key({"model", "other tenant"});
  EXPECT_EQ(kv.index.longest_run(other, chain.keys()), 0);
  EXPECT_EQ(kv.index.longest_run(kv.root, chain.keys().subspan(1)), 0);
}

TEST(PrefixIndex, GivesUpADuplicateForWhatIsThere) {
  KvParts kv(8);
  const PrefixChain chain = chain_of(kv, 0, 2);
  const std::vector<int32_t> first = fill(kv, chain);
  EXPECT_EQ(fill(kv, chain), first);
  EXPECT_EQ(kv.index.stats().duplicates, 2);
  EXPECT_EQ(kv.pool.n_free(), 6);
  EXPECT_TRUE(kv.check({}).is_ok());
}

TEST(PrefixIndex, EvictsLeavesFirstAndOnlyWhatNobodyUses) {
  KvParts kv(4);
  const PrefixChain chain = chain_of(kv, 0, 4);
  const std::vector<int32_t> pages = fill(kv, chain);
  const std::vector<int32_t> used = kv.index.match(kv.root, chain.keys().first(2));
  EXPECT_EQ(kv.index.n_available(), 2);
  EXPECT_EQ(kv.index.evict(1), 1);
  EXPECT_EQ(kv.index.longest_run(kv.root, chain.keys()), 3);
  EXPECT_EQ(kv.index.evict(4), 1);
  EXPECT_EQ(kv.index.longest_run(kv.root, chain.keys()), 2);
  EXPECT_EQ(kv.index.allocate(3).status().code(), StatusCode::kResourceExhausted);
  for (const int32_t page : used) kv.pool.drop(page);
  EXPECT_EQ(kv.index.allocate(4)->size(), 4u);
  EXPECT_EQ(kv.index.stats().evicted, 4);
  EXPECT_TRUE(kv.index.entries().empty());
}

TEST(PrefixIndex, EvictsNothingInVain) {
  KvParts kv(4);
  fill(kv, chain_of(kv, 0, 3));
  EXPECT_FALSE(kv.index.allocate(5).is_ok());
  EXPECT_EQ(kv.index.stats().evicted, 0);
  EXPECT_EQ(kv.index.allocate(2)->size(), 2u);
  EXPECT_EQ(kv.index.stats().evicted, 1);
}

TEST(PrefixIndex, OfEqualCostTheOneUsedLongestAgoLeaves) {
  KvParts kv(3);
  const std::vector<PrefixChain> chains = {chain_of(kv, 0, 1), chain_of(kv, 100, 1),
                                           chain_of(kv, 200, 1)};
  for (const PrefixChain& chain : chains) fill(kv, chain);
  for (const int32_t page : kv.index.match(kv.root, chains[0].keys())) kv.pool.drop(page);
  kv.index.evict(1);
  EXPECT_EQ(kv.index.longest_run(kv.root, chains[1].keys()), 0);
  EXPECT_EQ(kv.index.longest_run(kv.root, chains[0].keys()), 1);
}

TEST(PrefixIndex, PagesThatAreDearToRecomputeStay) {
  RecomputeCost cost;
  cost.encode_flops_per_row[static_cast<size_t>(Modality::kImage)] = 50;
  KvParts kv(2, cost);
  const PrefixChain text = chain_of(kv, 0, 1);
  const std::vector<int32_t> page = *kv.pool.allocate(1);
  kv.pool.set_modality(page[0], Modality::kImage);
  const PrefixKey picture = media_page_key(kv.root, test::media_id(1), 0, 16);
  ASSERT_TRUE(kv.index.publish({.key = picture, .parent = kv.root, .page = page[0], .n_tokens = 16})
                  .is_ok());
  kv.pool.drop(page[0]);
  fill(kv, text);  // newer, but cheap
  kv.index.evict(1);
  EXPECT_EQ(kv.index.longest_run(kv.root, text.keys()), 0);
  EXPECT_EQ(kv.index.longest_run(kv.root, std::span(&picture, 1)), 1);
}

TEST(PrefixIndex, TakesNoPageWithoutTheOneBefore) {
  KvParts kv(4);
  const PrefixChain chain = chain_of(kv, 0, 2);
  const std::vector<int32_t> pages = *kv.index.allocate(2);
  const PublishedPage second{.key = chain.key(1),
                             .parent = chain.key(0),
                             .page = pages[1],
                             .page_before = pages[0],
                             .position = 16,
                             .n_tokens = 16};
  EXPECT_EQ(kv.index.publish(second).status().code(), StatusCode::kFailedPrecondition);
  fill(kv, chain_of(kv, 0, 1));  // the same contents, but not this table's page
  EXPECT_EQ(kv.index.publish(second).status().code(), StatusCode::kFailedPrecondition);
}

TEST(PrefixIndex, ClearingLeavesHeldPagesAlone) {
  KvParts kv(4);
  const PrefixChain chain = chain_of(kv, 0, 2);
  fill(kv, chain);
  const std::vector<int32_t> held = kv.index.match(kv.root, chain.keys().first(1));
  kv.index.clear();
  EXPECT_EQ(kv.pool.n_free(), 3);
  EXPECT_EQ(kv.pool.references(held[0]), 1);
  EXPECT_FALSE(kv.pool.published(held[0]));
}

TEST(RecomputeCost, GrowsWithPositionAndModality) {
  RecomputeCost cost{.flops_per_token = 10, .flops_per_pair = 1};
  cost.encode_flops_per_row[static_cast<size_t>(Modality::kImage)] = 5;
  EXPECT_EQ(cost.of(Modality::kText, 0, 2), 20 + 3);  // pairs (0,0), (1,0), (1,1)
  EXPECT_EQ(cost.of(Modality::kText, 100, 2), 20 + 203);
  EXPECT_EQ(cost.of(Modality::kImage, 0, 2), 30 + 3);
}

}  // namespace
}  // namespace triptych
