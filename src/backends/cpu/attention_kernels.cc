// Paged causal attention and bidirectional attention within segments.
#include <atomic>
#include <cmath>
#include <cstring>

#include "backends/cpu/attention_tile.h"
#include "backends/cpu/cpu_ops.h"
#include "backends/cpu/hwy_levels.h"
#include "ops/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/attention_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// After foreach_target: compiled once a target like this file.
#include "backends/cpu/attention_core-inl.h"
#include "backends/cpu/attention_paged-inl.h"
#include "backends/cpu/attention_segment-inl.h"

#if HWY_ONCE
namespace triptych {

void fill_cpu_attention(KernelTable& table, CpuIsa isa) {
  if (isa >= CpuIsa::kAvx512) {
    table.paged_attention = N_AVX3::paged_attention;
    table.segment_attention = N_AVX3::segment_attention;
  } else if (isa >= CpuIsa::kAvx2) {
    table.paged_attention = N_AVX2::paged_attention;
    table.segment_attention = N_AVX2::segment_attention;
  } else {
    table.paged_attention = N_SSSE3::paged_attention;
    table.segment_attention = N_SSSE3::segment_attention;
  }
}

}  // namespace triptych
#endif  // HWY_ONCE
