// Rotary position embedding, half-split pairs.
#include "backends/cpu/cpu_ops.h"
#include "backends/cpu/hwy_levels.h"
#include "ops/rope.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/rope_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace triptych {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// One head: pairs (x[i], x[i + half]) by angle i.
HWY_INLINE void rotate_head(float* x, const float* cos, const float* sin, int64_t half) {
  const hn::ScalableTag<float> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  int64_t i = 0;
  for (; i + lanes <= half; i += lanes) {
    const auto a = hn::LoadU(tag, x + i);
    const auto b = hn::LoadU(tag, x + half + i);
    const auto c = hn::LoadU(tag, cos + i);
    const auto s = hn::LoadU(tag, sin + i);
    hn::StoreU(hn::NegMulAdd(b, s, hn::Mul(a, c)), tag, x + i);
    hn::StoreU(hn::MulAdd(a, s, hn::Mul(b, c)), tag, x + half + i);
  }
  for (; i < half; ++i) {
    const float a = x[i];
    const float b = x[half + i];
    x[i] = a * cos[i] - b * sin[i];
    x[half + i] = b * cos[i] + a * sin[i];
  }
}

void rope_rows(const RopeArgs& a, int64_t begin, int64_t end) {
  const int64_t half = a.rot / 2;
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t h = 0; h < a.heads; ++h) {
      rotate_head(a.x + row * a.ldx + h * a.head_dim, a.cos + row * half, a.sin + row * half, half);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace triptych
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

namespace triptych {
namespace {

template <void (*Rows)(const RopeArgs&, int64_t, int64_t)>
void rope(const RopeArgs& a, const Stream& stream) {
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, a.heads * a.head_dim));
  stream.pool->parallel_for(a.n, grain, [&](int64_t begin, int64_t end) { Rows(a, begin, end); });
}

}  // namespace

void fill_cpu_rope(KernelTable& table, CpuIsa isa) {
  table.rope = isa >= CpuIsa::kAvx512 ? rope<N_AVX3::rope_rows>
               : isa >= CpuIsa::kAvx2 ? rope<N_AVX2::rope_rows>
                                      : rope<N_SSSE3::rope_rows>;
}

}  // namespace triptych
#endif  // HWY_ONCE
