#include "ops/norm.h"

#include <gmock/gmock.h>

#include "ops/test_ops_fixture.h"

namespace triptych {
namespace {

using NormOpsTest = OpsTest;

TEST_F(NormOpsTest, SameShapesPass) {
  EXPECT_TRUE(rms_norm(ctx_, view({3, 8}), nullptr, 1e-5f, view({3, 8})).is_ok());
  EXPECT_TRUE(layer_norm(ctx_, view({3, 8}), nullptr, nullptr, 1e-5f, view({3, 8})).is_ok());
  EXPECT_EQ(calls_, 2);
}

TEST_F(NormOpsTest, OtherShapesAreNamed) {
  const Status s = rms_norm(ctx_, view({3, 8}), nullptr, 1e-5f, view({3, 9}));
  EXPECT_EQ(s.code(), StatusCode::kInternal);
  EXPECT_THAT(s.message(), testing::HasSubstr("[3, 8] into f32 [3, 9]"));
  EXPECT_FALSE(layer_norm(ctx_, view({24}), nullptr, nullptr, 1e-5f, view({24})).is_ok());
  View sixteen = view({3, 8});
  sixteen.dtype = DType::kBF16;
  EXPECT_FALSE(rms_norm(ctx_, sixteen, nullptr, 1e-5f, view({3, 8})).is_ok());
  View spread = view({3, 16});
  spread.shape = {3, 8};
  spread.strides[1] = 2;  // elements of a row must lie side by side
  EXPECT_FALSE(rms_norm(ctx_, spread, nullptr, 1e-5f, view({3, 8})).is_ok());
  EXPECT_EQ(calls_, 0);
}

TEST(NormCost, ReadsAndWritesEachElementOnce) {
  EXPECT_EQ(norm_cost(3, 8).bytes, 3 * 8 * 8.0);
  EXPECT_GT(norm_cost(3, 8).flops, 0);
}

}  // namespace
}  // namespace triptych
