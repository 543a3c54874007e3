#include "ops/head_norm.h"

#include <gmock/gmock.h>

#include "ops/test_ops_fixture.h"

namespace triptych {
namespace {

class HeadNormOpsTest : public OpsTest {
 protected:
  /// Three heads of 8 in rows of 40.
  HeadNormArgs args() {
    return {.x = view({2, 40}).f32(),
            .ldx = 40,
            .n = 2,
            .heads = 3,
            .head_dim = 8,
            .weight = view({8}).f32(),
            .eps = 1e-6f};
  }
};

TEST_F(HeadNormOpsTest, HeadsThatFitTheirRowsPass) {
  HeadNormArgs a = args();
  EXPECT_TRUE(head_norm(ctx_, a).is_ok());
  a.heads = 5;
  EXPECT_TRUE(head_norm(ctx_, a).is_ok());
  a.n = 0;
  EXPECT_TRUE(head_norm(ctx_, a).is_ok());
  EXPECT_EQ(calls_, 3);
}

TEST_F(HeadNormOpsTest, HeadsThatReachIntoTheNextRowAreNamed) {
  HeadNormArgs a = args();
  a.heads = 6;
  const Status s = head_norm(ctx_, a);
  EXPECT_EQ(s.code(), StatusCode::kInternal);
  EXPECT_THAT(s.message(), testing::HasSubstr("6 heads of 8 in rows 40 apart"));
  a = args();
  a.head_dim = 0;
  EXPECT_FALSE(head_norm(ctx_, a).is_ok());
  EXPECT_EQ(calls_, 0);
}

TEST(HeadNormCost, ReadsAndWritesEachElementOnce) {
  EXPECT_EQ(head_norm_cost(3, 4, 8).bytes, 3 * 4 * 8 * 8.0);
  EXPECT_GT(head_norm_cost(3, 4, 8).flops, 0);
}

}  // namespace
}  // namespace triptych
