#include "cache/kv/page_pool.h"

#include <gtest/gtest.h>

#include <set>

namespace triptych {
namespace {

constexpr KvGeometry kSmall{.dtype = DType::kBF16, .n_layers = 3, .n_kv_heads = 2, .head_dim = 8};

TEST(PagePool, GivesEachPageOnceAndTakesThemBack) {
  Result<PagePool> pool = PagePool::create(kSmall, 5, false);
  ASSERT_TRUE(pool.is_ok());
  std::vector<int32_t> a;
  std::vector<int32_t> b;
  ASSERT_TRUE(pool->reserve(17, a).is_ok());
  ASSERT_TRUE(pool->reserve(33, b).is_ok());
  EXPECT_EQ(a.size(), 2u);
  EXPECT_EQ(b.size(), 3u);
  std::set<int32_t> all(a.begin(), a.end());
  all.insert(b.begin(), b.end());
  EXPECT_EQ(all, (std::set<int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(pool->n_free(), 0);
  pool->release(a);
  pool->release(b);
  EXPECT_EQ(pool->n_free(), 5);
  EXPECT_TRUE(a.empty());
}

TEST(PagePool, GrowsATableOnlyWhenItsPagesAreFull) {
  Result<PagePool> pool = PagePool::create(kSmall, 4, false);
  std::vector<int32_t> table;
  ASSERT_TRUE(pool->reserve(16, table).is_ok());
  EXPECT_EQ(table.size(), 1u);
  ASSERT_TRUE(pool->reserve(16, table).is_ok());
  EXPECT_EQ(table.size(), 1u);
  ASSERT_TRUE(pool->reserve(18, table).is_ok());
  EXPECT_EQ(table.size(), 2u);
}

TEST(PagePool, RefusesWholeReservationsThatDoNotFit) {
  Result<PagePool> pool = PagePool::create(kSmall, 2, false);
  std::vector<int32_t> table;
  const Status status = pool->reserve(33, table);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(pool->n_free(), 2);
}

TEST(PagePool, LayersOfAPageDoNotOverlap) {
  Result<PagePool> pool = PagePool::create(kSmall, 2, false);
  const std::vector<KvLayer>& layers = pool->layers();
  ASSERT_EQ(layers.size(), 3u);
  const int64_t layer_bytes = 2 * 2 * 8 * kPageTokens * 2;
  EXPECT_EQ(layers[1].base - layers[0].base, layer_bytes);
  EXPECT_EQ(layers[0].page_stride, 3 * layer_bytes);
}

TEST(PagePool, KeepsSharedPagesUntilTheirLastHolderLetsGo) {
  Result<PagePool> pool = PagePool::create(kSmall, 3, false);
  Result<std::vector<int32_t>> pages = pool->allocate(2);
  ASSERT_TRUE(pages.is_ok());
  const int32_t page = pages->front();
  pool->share(page);
  EXPECT_EQ(pool->references(page), 2);
  pool->drop(page);
  EXPECT_EQ(pool->n_free(), 1);
  pool->drop(page);
  EXPECT_EQ(pool->n_free(), 2);
  EXPECT_EQ(pool->allocate(3).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(pool->n_free(), 2);
}

TEST(PagePool, HandsOutTheLowestFreePagesFirst) {
  Result<PagePool> pool = PagePool::create(kSmall, 6, false);
  ASSERT_TRUE(pool->allocate(6).is_ok());
  for (const int32_t page : {4, 1, 5, 2}) pool->drop(page);
  EXPECT_EQ(*pool->allocate(3), (std::vector<int32_t>{1, 2, 4}));
}

TEST(PagePool, APageIsTypedAndStartsAsText) {
  Result<PagePool> pool = PagePool::create(kSmall, 1, false);
  ASSERT_TRUE(pool->allocate(1).is_ok());
  pool->set_modality(0, Modality::kImage);
  EXPECT_EQ(pool->type(0).modality, Modality::kImage);
  EXPECT_EQ(pool->type(0).dtype, DType::kBF16);
  pool->drop(0);
  ASSERT_TRUE(pool->allocate(1).is_ok());
  EXPECT_EQ(pool->type(0).modality, Modality::kText);
}

TEST(PagePool, CountsWhatEvictionCouldFree) {
  Result<PagePool> pool = PagePool::create(kSmall, 2, false);
  ASSERT_TRUE(pool->allocate(1).is_ok());
  pool->share(0);  // the index
  pool->set_published(0, true);
  EXPECT_EQ(pool->n_reclaimable(), 0);
  pool->drop(0);  // the sequence ends
  EXPECT_EQ(pool->n_reclaimable(), 1);
  pool->set_published(0, false);
  pool->drop(0);
  EXPECT_EQ(pool->n_reclaimable(), 0);
  EXPECT_EQ(pool->n_free(), 2);
}

TEST(PagePool, BytesOfPagesAreDisjointAndHoldAllLayers) {
  Result<PagePool> pool = PagePool::create(kSmall, 2, false);
  EXPECT_EQ(static_cast<int64_t>(pool->bytes(0).size()), kSmall.page_bytes());
  EXPECT_EQ(pool->bytes(0).data() + kSmall.page_bytes(), pool->bytes(1).data());
  EXPECT_EQ(pool->bytes(1).data(), pool->layers()[0].base + pool->layers()[0].page_stride);
}

}  // namespace
}  // namespace triptych
