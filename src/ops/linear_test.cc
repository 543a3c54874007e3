#include "ops/linear.h"

#include <gmock/gmock.h>

#include "ops/embedding.h"
#include "ops/test_ops_fixture.h"

namespace triptych {
namespace {

using testing::HasSubstr;

class LinearOpsTest : public OpsTest {
 protected:
  static PackedWeight weight(int64_t n, int64_t k, DType dtype = DType::kBF16) {
    return {.dtype = dtype, .layout = WeightLayout::kPanel16, .n = n, .k = k, .data = nullptr};
  }
};

TEST_F(LinearOpsTest, ShapesThatAgreePass) {
  EXPECT_TRUE(linear(ctx_, view({3, 8}), weight(20, 8), {}, view({3, 20})).is_ok());
  EXPECT_TRUE(linear(ctx_, view({3, 8}), weight(64, 8), {.gated = true}, view({3, 32})).is_ok());
  EXPECT_TRUE(linear(ctx_, view({0, 8}), weight(20, 8), {}, view({0, 20})).is_ok());
  EXPECT_EQ(calls_, 2) << "no rows, no call";
  EXPECT_EQ(arena_.used(), 0u);
}

TEST_F(LinearOpsTest, ShapesThatDisagreeAreNamed) {
  const Status s = linear(ctx_, view({3, 9}), weight(20, 8), {}, view({3, 20}));
  EXPECT_EQ(s.code(), StatusCode::kInternal);
  EXPECT_THAT(s.message(), HasSubstr("[3, 9] with weight [20, 8] into [3, 20]"));
  EXPECT_FALSE(linear(ctx_, view({3, 8}), weight(20, 8), {}, view({4, 20})).is_ok());
  EXPECT_FALSE(linear(ctx_, view({3, 8}), weight(48, 8), {.gated = true}, view({3, 24})).is_ok());
  const View residual = view({3, 19});
  EXPECT_FALSE(
      linear(ctx_, view({3, 8}), weight(20, 8), {.residual = &residual}, view({3, 20})).is_ok());
  EXPECT_EQ(calls_, 0);
}

TEST_F(LinearOpsTest, TooLittleScratchIsAnError) {
  const View x = View::dense(nullptr, DType::kF32, {1 << 10, 1 << 12});
  const View out = View::dense(nullptr, DType::kF32, {1 << 10, 16});
  EXPECT_EQ(linear(ctx_, x, weight(16, 1 << 12), {}, out).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(calls_, 0);
}

TEST(PackedWeight, BytesIncludePadding) {
  EXPECT_EQ(packed_weight_bytes(DType::kF32, 16, 10), 16u * 10 * 4);
  EXPECT_EQ(packed_weight_bytes(DType::kF32, 17, 10), 32u * 10 * 4);
  EXPECT_EQ(packed_weight_bytes(DType::kBF16, 16, 9), 16u * 10 * 2);
}

TEST(LinearCost, CountsProductsAndWeights) {
  const PackedWeight w{DType::kBF16, WeightLayout::kPanel16, 32, 8, nullptr};
  EXPECT_EQ(linear_cost(5, w).flops, 2.0 * 5 * 32 * 8);
  EXPECT_GE(linear_cost(1, w).bytes, 32.0 * 8 * 2);
}

TEST_F(LinearOpsTest, EmbeddingIdsOutsideTheVocabularyAreTheCallersFault) {
  const int32_t good[] = {0, 19, 3};
  EXPECT_TRUE(embedding(ctx_, weight(20, 8), good, view({3, 8})).is_ok());
  EXPECT_EQ(calls_, 1);
  for (const int32_t bad : {-1, 20}) {
    const int32_t ids[] = {0, bad, 3};
    const Status s = embedding(ctx_, weight(20, 8), ids, view({3, 8}));
    EXPECT_EQ(s.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(s.message(), HasSubstr("position 1"));
  }
  EXPECT_EQ(embedding(ctx_, weight(20, 8), good, view({3, 9})).code(), StatusCode::kInternal);
  EXPECT_EQ(calls_, 1);
}

}  // namespace
}  // namespace triptych
