#include "core/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace triptych {
namespace {

using testing::HasSubstr;

TEST(Shape, CountsAndCompares) {
  EXPECT_EQ(Shape{}.n_elements(), 1);
  EXPECT_EQ((Shape{2, 3, 4}).n_elements(), 24);
  EXPECT_EQ((Shape{2, 0, 4}).n_elements(), 0);
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 1}));
  EXPECT_EQ((Shape{1, 576, 1024}).to_string(), "[1, 576, 1024]");
  EXPECT_EQ(Shape{}.to_string(), "[]");
}

TEST(Shape, HoldsSixAxes) {
  Shape s;
  for (int i = 0; i < kMaxRank; ++i) s.push_back(i + 1);
  EXPECT_EQ(s.rank(), kMaxRank);
  EXPECT_EQ(s[kMaxRank - 1], kMaxRank);
  EXPECT_EQ(s.n_elements(), 720);
}

TEST(View, DenseStridesAreRowMajor) {
  std::vector<float> data(24);
  const View v = View::dense(data.data(), DType::kF32, {2, 3, 4});
  EXPECT_EQ(v.strides[0], 12);
  EXPECT_EQ(v.strides[1], 4);
  EXPECT_EQ(v.strides[2], 1);
  EXPECT_TRUE(v.is_dense());
  EXPECT_EQ(v.n_bytes(), 96);
  EXPECT_EQ(v.f32(), data.data());
}

TEST(View, RowsShareMemory) {
  std::vector<uint16_t> data(24);
  const View v = View::dense(data.data(), DType::kBF16, {6, 4});
  const View rows = v.rows(2, 3);
  EXPECT_EQ(rows.as<uint16_t>(), data.data() + 8);
  EXPECT_EQ(rows.shape, (Shape{3, 4}));
  EXPECT_TRUE(rows.is_dense());
  EXPECT_EQ(v.rows(6, 0).shape, (Shape{0, 4}));
}

TEST(View, AColumnBlockIsNotDense) {
  std::vector<float> data(24);
  View v = View::dense(data.data(), DType::kF32, {4, 6});
  v.shape = {4, 3};
  EXPECT_FALSE(v.is_dense());
  EXPECT_EQ(v.rows(1, 2).f32(), data.data() + 6);
  EXPECT_EQ(v.rows(1, 2).strides[0], 6);
}

TEST(View, StridesOfSingleAndMissingElementsDoNotMatter) {
  std::vector<float> data(24);
  View v = View::dense(data.data(), DType::kF32, {4, 6});
  v.shape = {1, 3};  // one row: nothing lies between rows
  EXPECT_TRUE(v.is_dense());
  v.shape = {0, 3};
  EXPECT_TRUE(v.is_dense());
}

TEST(Tensor, IsZeroAlignedAndDense) {
  auto t = Tensor::allocate(DType::kF32, {3, 5});
  ASSERT_TRUE(t.is_ok());
  EXPECT_EQ(t->shape(), (Shape{3, 5}));
  EXPECT_EQ(t->dtype(), DType::kF32);
  EXPECT_EQ(t->n_bytes(), 60);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t->f32()) % 64, 0u);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(t->f32()[i], 0.0f);
  EXPECT_TRUE(t->view().is_dense());
}

TEST(Tensor, MovesKeepTheMemory) {
  auto made = Tensor::allocate(DType::kI32, {4});
  ASSERT_TRUE(made.is_ok());
  Tensor a = std::move(*made);
  const void* where = a.view().data;
  const Tensor b = std::move(a);
  EXPECT_EQ(b.view().data, where);
  b.view().as<int32_t>()[3] = 1;
}

TEST(Tensor, EmptyTensorsAreAllowed) {
  auto t = Tensor::allocate(DType::kF32, {0, 8});
  ASSERT_TRUE(t.is_ok());
  EXPECT_EQ(t->n_bytes(), 0);
}

TEST(Tensor, ShapesThatNoMemoryHoldsAreRefused) {
  const int64_t big = int64_t{1} << 40;
  for (const Shape& shape : {Shape{big, big}, Shape{big, big, big, big}, Shape{INT64_MAX, 4},
                             Shape{-1, 4}, Shape{-big, -big}}) {
    const auto t = Tensor::allocate(DType::kF32, shape);
    ASSERT_FALSE(t.is_ok()) << shape.to_string();
    EXPECT_THAT(t.status().message(), HasSubstr(shape.to_string()));
  }
}

TEST(Arena, AllocatesAlignedAndGivesBackInScopes) {
  auto arena = Arena::create(1 << 16);
  ASSERT_TRUE(arena.is_ok());
  const auto a = arena->allocate(DType::kF32, {3});
  ASSERT_TRUE(a.is_ok());
  EXPECT_EQ(arena->used(), 64u);
  void* inner = nullptr;
  {
    const ArenaScope scope(*arena);
    const auto b = arena->allocate_bytes(1000);
    ASSERT_TRUE(b.is_ok());
    inner = *b;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(inner) % 64, 0u);
    EXPECT_EQ(arena->used(), 64u + 1024u);
  }
  EXPECT_EQ(arena->used(), 64u);
  EXPECT_EQ(arena->high_water(), 64u + 1024u);
  const auto again = arena->allocate_bytes(1);
  ASSERT_TRUE(again.is_ok());
  EXPECT_EQ(*again, inner);
}

TEST(Arena, StopsAtItsCapacityAndSaysSo) {
  auto arena = Arena::create(4096);
  ASSERT_TRUE(arena.is_ok());
  ASSERT_TRUE(arena->allocate_bytes(arena->capacity() - 64).is_ok());
  EXPECT_TRUE(arena->allocate_bytes(64).is_ok());
  const auto full = arena->allocate_bytes(1);
  ASSERT_FALSE(full.is_ok());
  EXPECT_EQ(full.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(full.status().message(), HasSubstr("1 bytes asked, 0 of 4096 left"));
  EXPECT_TRUE(arena->allocate_bytes(0).is_ok());
}

TEST(Arena, SizesThatOverflowAreRefused) {
  auto arena = Arena::create(4096);
  ASSERT_TRUE(arena.is_ok());
  EXPECT_FALSE(arena->allocate_bytes(SIZE_MAX).is_ok());
  EXPECT_FALSE(arena->allocate_bytes(SIZE_MAX - 10).is_ok());
  const int64_t big = int64_t{1} << 40;
  EXPECT_FALSE(arena->allocate(DType::kF32, {big, big}).is_ok());
  EXPECT_FALSE(arena->allocate(DType::kF32, {-1}).is_ok());
  EXPECT_FALSE(arena->allocate(DType::kF32, {-1, -16}).is_ok());
  EXPECT_EQ(arena->used(), 0u);
}

TEST(Arena, WithoutMemoryGivesNothing) {
  Arena arena;
  EXPECT_FALSE(arena.allocate_bytes(1).is_ok());
}

}  // namespace
}  // namespace triptych
