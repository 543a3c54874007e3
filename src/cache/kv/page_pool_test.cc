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

}  // namespace
}  // namespace triptych
