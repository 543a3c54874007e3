#include "prep/pixel_cache.h"

#include <gtest/gtest.h>

namespace triptych {
namespace {

constexpr uint64_t kPixelBytes = 3 * 4 * 4 * sizeof(float);

PixelCache::Key key(uint32_t tenant, uint8_t number) {
  MediaId id{};
  id[0] = number;
  return {tenant, id};
}

PixelCache::Media media(int64_t side = 4) {
  auto out = std::make_shared<PreparedMedia>();
  auto pixels = Tensor::allocate(DType::kF32, Shape{3, side, side});
  EXPECT_TRUE(pixels.is_ok());
  out->pixels = std::move(*pixels);
  return out;
}

TEST(PixelCache, TheOneUsedLongestAgoLeaves) {
  PixelCache cache(2 * kPixelBytes);
  const PixelCache::Media first = media();
  cache.insert(key(0, 1), first);
  cache.insert(key(0, 2), media());
  EXPECT_EQ(cache.find(key(0, 1)), first);
  cache.insert(key(0, 3), media());
  EXPECT_EQ(cache.find(key(0, 1)), first);
  EXPECT_EQ(cache.find(key(0, 2)), nullptr);
  EXPECT_NE(cache.find(key(0, 3)), nullptr);
  EXPECT_EQ(cache.n_bytes(), 2 * kPixelBytes);
}

TEST(PixelCache, TenantsDoNotShare) {
  PixelCache cache(2 * kPixelBytes);
  cache.insert(key(1, 1), media());
  EXPECT_EQ(cache.find(key(2, 1)), nullptr);
}

TEST(PixelCache, KeepsNothingBeyondItsBudgetAndNothingTwice) {
  PixelCache cache(kPixelBytes);
  cache.insert(key(0, 1), media());
  cache.insert(key(0, 2), media(5));  // too large: it pushes nothing out
  EXPECT_NE(cache.find(key(0, 1)), nullptr);
  EXPECT_EQ(cache.find(key(0, 2)), nullptr);
  cache.insert(key(0, 1), media());
  EXPECT_EQ(cache.n_bytes(), kPixelBytes);
  PixelCache none(0);
  none.insert(key(0, 1), media());
  EXPECT_EQ(none.find(key(0, 1)), nullptr);
}

}  // namespace
}  // namespace triptych
