#include "ops/rope.h"

#include <gmock/gmock.h>

#include "ops/test_ops_fixture.h"

namespace triptych {
namespace {

class RopeOpsTest : public OpsTest {
 protected:
  Status call(int64_t head_dim, int64_t rot) {
    return rope(ctx_, {.x = nullptr,
                       .ldx = 2 * head_dim,
                       .n = 3,
                       .heads = 2,
                       .head_dim = head_dim,
                       .rot = rot,
                       .cos = nullptr,
                       .sin = nullptr});
  }
};

TEST_F(RopeOpsTest, WholeAndPartialHeadsPass) {
  EXPECT_TRUE(call(64, 64).is_ok());
  EXPECT_TRUE(call(80, 32).is_ok());
  EXPECT_TRUE(call(80, 0).is_ok());
  EXPECT_EQ(calls_, 3);
}

TEST_F(RopeOpsTest, OddAndTooLongRotationsAreRefused) {
  EXPECT_THAT(call(64, 63).message(), testing::HasSubstr("63 rotated elements in heads of 64"));
  EXPECT_EQ(call(64, 66).code(), StatusCode::kInternal);
  EXPECT_EQ(call(64, -2).code(), StatusCode::kInternal);
  EXPECT_EQ(calls_, 0);
}

}  // namespace
}  // namespace triptych
