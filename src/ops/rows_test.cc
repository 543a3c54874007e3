#include "ops/rows.h"

#include <gmock/gmock.h>

#include "ops/test_ops_fixture.h"

namespace triptych {
namespace {

using testing::HasSubstr;
using RowsOpsTest = OpsTest;

TEST_F(RowsOpsTest, IndicesWithinTheViewsPass) {
  const int32_t from[] = {4, 0};
  const int32_t to[] = {0, 2};
  EXPECT_TRUE(gather_rows(ctx_, view({5, 8}), from, 2, view({3, 8}), to).is_ok());
  EXPECT_TRUE(gather_rows(ctx_, view({5, 8}), nullptr, 3, view({3, 8}), nullptr).is_ok());
  EXPECT_TRUE(gather_rows(ctx_, view({5, 8}), from, 0, view({0, 8}), to).is_ok());
  EXPECT_EQ(calls_, 3);
}

TEST_F(RowsOpsTest, IndicesOutsideAreNamed) {
  const int32_t beyond[] = {0, 5};
  const int32_t negative[] = {0, -1};
  const Status s = gather_rows(ctx_, view({5, 8}), beyond, 2, view({5, 8}), nullptr);
  EXPECT_EQ(s.code(), StatusCode::kInternal);
  EXPECT_THAT(s.message(), HasSubstr("row 5 of 5"));
  EXPECT_FALSE(gather_rows(ctx_, view({5, 8}), nullptr, 2, view({5, 8}), negative).is_ok());
  EXPECT_FALSE(gather_rows(ctx_, view({5, 8}), nullptr, 6, view({9, 8}), nullptr).is_ok());
  EXPECT_FALSE(gather_rows(ctx_, view({5, 8}), nullptr, 4, view({3, 8}), nullptr).is_ok());
  EXPECT_FALSE(gather_rows(ctx_, view({5, 8}), nullptr, 1, view({3, 9}), nullptr).is_ok());
  EXPECT_FALSE(gather_rows(ctx_, view({40}), nullptr, 1, view({40}), nullptr).is_ok());
  EXPECT_EQ(calls_, 0);
}

TEST_F(RowsOpsTest, PatchesMustFitTheOutput) {
  EXPECT_TRUE(patchify(ctx_, view({3, 30, 29}), 14, view({4, 588})).is_ok());
  EXPECT_EQ(calls_, 1);
  EXPECT_THAT(patchify(ctx_, view({3, 28, 28}), 14, view({5, 588})).message(),
              HasSubstr("[3, 28, 28] in patches of 14 into [5, 588]"));
  EXPECT_FALSE(patchify(ctx_, view({3, 28, 28}), 0, view({4, 588})).is_ok());
  EXPECT_FALSE(patchify(ctx_, view({28, 28}), 14, view({4, 196})).is_ok());
  View strided = view({4, 600});
  strided.shape = {4, 588};
  EXPECT_FALSE(patchify(ctx_, view({3, 28, 28}), 14, strided).is_ok());
  EXPECT_EQ(calls_, 1);
}

}  // namespace
}  // namespace triptych
