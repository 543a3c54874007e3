#include "backends/cpu/cpu_isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"

namespace triptych {
namespace {

using ::testing::HasSubstr;

TEST(CpuIsa, AutoIsTheFastestAvailable) {
  const std::vector<CpuIsa> levels = available_cpu_isas();
  ASSERT_FALSE(levels.empty());
  EXPECT_EQ(levels.front(), CpuIsa::kPortable);
  EXPECT_EQ(resolve_cpu_isa("auto").value(), fastest_cpu_isa(levels, cpu_has_slow_bf16_pairs()));
}

TEST(CpuIsa, TheFastestIsTheHighestExceptWithSlowPairs) {
  const std::vector<CpuIsa> all = {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512,
                                   CpuIsa::kAvx512Bf16, CpuIsa::kAmx};
  for (const bool slow : {false, true}) {
    EXPECT_EQ(fastest_cpu_isa({all.begin(), all.begin() + 1}, slow), CpuIsa::kPortable);
    EXPECT_EQ(fastest_cpu_isa({all.begin(), all.begin() + 3}, slow), CpuIsa::kAvx512);
    EXPECT_EQ(fastest_cpu_isa(all, slow), CpuIsa::kAmx);
  }
  const std::vector<CpuIsa> pairs(all.begin(), all.begin() + 4);
  EXPECT_EQ(fastest_cpu_isa(pairs, false), CpuIsa::kAvx512Bf16);
  EXPECT_EQ(fastest_cpu_isa(pairs, true), CpuIsa::kAvx512);
}

TEST(CpuIsa, EveryAvailableLevelCanBeForced) {
  for (const CpuIsa level : available_cpu_isas()) {
    EXPECT_EQ(resolve_cpu_isa(cpu_isa_name(level)).value(), level);
    const Result<KernelTable> table = make_cpu_kernels(level);
    ASSERT_TRUE(table.is_ok()) << table.status().message();
    EXPECT_EQ(table->level, cpu_isa_name(level));
  }
}

TEST(CpuIsa, LevelsTheMachineLacksAreRefusedByName) {
  for (const CpuIsa level : {CpuIsa::kAvx2, CpuIsa::kAvx512, CpuIsa::kAvx512Bf16, CpuIsa::kAmx}) {
    if (cpu_supports(level)) continue;
    const Status status = resolve_cpu_isa(cpu_isa_name(level)).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_THAT(status.message(), HasSubstr(std::string(cpu_isa_name(level))));
    EXPECT_EQ(make_cpu_kernels(level).status().code(), StatusCode::kUnsupported);
  }
}

TEST(CpuIsa, UnknownNamesListTheKnownOnes) {
  const Status status = resolve_cpu_isa("sse9").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("sse9"));
  EXPECT_THAT(status.message(), HasSubstr("auto, portable, avx2, avx512, avx512_bf16, amx"));
}

TEST(CpuIsa, BackendDescribesItself) {
  Settings settings;
  settings.cpu_isa = "portable";
  const Result<Backend> backend = make_cpu_backend(settings);
  ASSERT_TRUE(backend.is_ok()) << backend.status().message();
  EXPECT_THAT(backend->description, HasSubstr("portable"));
  EXPECT_FALSE(backend->native_bf16_matmul);
  EXPECT_EQ(first_missing_op(backend->kernels), nullptr);
  EXPECT_THAT(backend->facts, ::testing::Contains(HasSubstr("CPU level: portable (available: ")));
  if (available_cpu_isas().size() > 1) {
    EXPECT_THAT(backend->advice, ::testing::Contains(HasSubstr("TRIPTYCH_CPU_ISA holds")));
  }
}

}  // namespace
}  // namespace triptych
