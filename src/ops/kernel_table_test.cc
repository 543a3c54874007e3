#include "ops/kernel_table.h"

#include "ops/test_ops_fixture.h"

namespace triptych {
namespace {

using KernelTableTest = OpsTest;

TEST_F(KernelTableTest, ACompleteTableMissesNothing) {
  EXPECT_EQ(first_missing_op(table_), nullptr);
}

TEST_F(KernelTableTest, TheFirstMissingOperatorIsNamed) {
  table_.patchify = nullptr;
  EXPECT_STREQ(first_missing_op(table_), "patchify");
  table_.rms_norm = nullptr;
  EXPECT_STREQ(first_missing_op(table_), "rms_norm");
  EXPECT_STREQ(first_missing_op(KernelTable()), "linear");
}

TEST(OpCost, Adds) {
  OpCost total{1, 2};
  total += {10, 20};
  EXPECT_EQ(total.flops, 11);
  EXPECT_EQ(total.bytes, 22);
}

}  // namespace
}  // namespace triptych
