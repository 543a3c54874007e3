#include "backends/cpu/ceilings.h"

#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"

namespace triptych {
namespace {

// Only that figures come out where there should be some; how large they are is the machine's.
TEST(Ceilings, EveryLevelGivesFigures) {
  ThreadPool pool(2);
  for (const CpuIsa level : available_cpu_isas()) {
    const CpuCeilings found = measure_arithmetic(level, pool);
    EXPECT_GT(found.f32_flops, 0) << cpu_isa_name(level);
    EXPECT_GT(found.f32_gemm_flops, 0) << cpu_isa_name(level);
    EXPECT_EQ(found.bf16_flops > 0, cpu_has_bf16_matmul(level)) << cpu_isa_name(level);
    EXPECT_EQ(found.bf16_gemm_flops > 0, cpu_has_bf16_matmul(level)) << cpu_isa_name(level);
  }
}

TEST(Ceilings, ReadBandwidthNeedsNoWholeParts) {
  ThreadPool pool(3);
  const Result<double> read = measure_read_bandwidth(pool, 7);
  ASSERT_TRUE(read.is_ok());
  EXPECT_GT(read.value(), 0);
}

}  // namespace
}  // namespace triptych
