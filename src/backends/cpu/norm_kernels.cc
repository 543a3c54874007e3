// RMS normalisation (of rows and of heads) and layer normalisation. Each is reduced by itself in a
// fixed order, so a row's result does not depend on the batch or on threads.
#include <cmath>

#include "backends/cpu/cpu_ops.h"
#include "backends/cpu/hwy_levels.h"
#include "ops/head_norm.h"
#include "ops/norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/norm_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace triptych {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;

/// Sum of f(x[i]) over a row. Lanes times four partial sums keep the rounding error of long rows
/// small without the cost of f64.
template <typename VectorFn, typename ScalarFn>
HWY_INLINE float sum_row(const float* x, int64_t d, VectorFn vector_fn, ScalarFn scalar_fn) {
  const FloatTag tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  FloatVec s0 = hn::Zero(tag);
  FloatVec s1 = s0;
  FloatVec s2 = s0;
  FloatVec s3 = s0;
  int64_t i = 0;
  for (; i + 4 * lanes <= d; i += 4 * lanes) {
    s0 = vector_fn(hn::LoadU(tag, x + i), s0);
    s1 = vector_fn(hn::LoadU(tag, x + i + lanes), s1);
    s2 = vector_fn(hn::LoadU(tag, x + i + 2 * lanes), s2);
    s3 = vector_fn(hn::LoadU(tag, x + i + 3 * lanes), s3);
  }
  for (; i + lanes <= d; i += lanes) s0 = vector_fn(hn::LoadU(tag, x + i), s0);
  float sum = hn::GetLane(hn::SumOfLanes(tag, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; i < d; ++i) sum += scalar_fn(x[i]);
  return sum;
}

/// out = x / sqrt(mean(x^2) + eps) * weight over d elements; out may be x.
HWY_INLINE void rms_norm_row(const float* x, int64_t d, const float* weight, float eps,
                             float* out) {
  const FloatTag tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const float squares = sum_row(
      x, d, [](FloatVec v, FloatVec s) HWY_ATTR { return hn::MulAdd(v, v, s); },
      [](float v) HWY_ATTR { return v * v; });
  const float factor = 1.0f / std::sqrt(squares / static_cast<float>(d) + eps);
  const FloatVec wide_factor = hn::Set(tag, factor);
  int64_t i = 0;
  for (; i + lanes <= d; i += lanes) {
    const FloatVec scaled = hn::Mul(hn::LoadU(tag, x + i), wide_factor);
    hn::StoreU(hn::Mul(scaled, hn::LoadU(tag, weight + i)), tag, out + i);
  }
  for (; i < d; ++i) out[i] = x[i] * factor * weight[i];
}

void rms_norm_rows(const RmsNormArgs& a, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    rms_norm_row(a.x + row * a.ldx, a.d, a.weight, a.eps, a.out + row * a.ldo);
  }
}

void head_norm_rows(const HeadNormArgs& a, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t h = 0; h < a.heads; ++h) {
      float* head = a.x + row * a.ldx + h * a.head_dim;
      rms_norm_row(head, a.head_dim, a.weight, a.eps, head);
    }
  }
}

void layer_norm_rows(const LayerNormArgs& a, int64_t begin, int64_t end) {
  const FloatTag tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const auto width = static_cast<float>(a.d);
  for (int64_t row = begin; row < end; ++row) {
    const float* x = a.x + row * a.ldx;
    float* out = a.out + row * a.ldo;
    const float mean = sum_row(
                           x, a.d, [](FloatVec v, FloatVec s) HWY_ATTR { return hn::Add(s, v); },
                           [](float v) HWY_ATTR { return v; }) /
                       width;
    const FloatVec wide_mean = hn::Set(tag, mean);
    // Second pass over centred values: the one-pass formula cancels when the mean is large.
    const float squares = sum_row(
        x, a.d,
        [wide_mean](FloatVec v, FloatVec s) HWY_ATTR {
          const FloatVec centred = hn::Sub(v, wide_mean);
          return hn::MulAdd(centred, centred, s);
        },
        [mean](float v) HWY_ATTR { return (v - mean) * (v - mean); });
    const float factor = 1.0f / std::sqrt(squares / width + a.eps);
    const FloatVec wide_factor = hn::Set(tag, factor);
    int64_t i = 0;
    for (; i + lanes <= a.d; i += lanes) {
      const FloatVec scaled = hn::Mul(hn::Sub(hn::LoadU(tag, x + i), wide_mean), wide_factor);
      hn::StoreU(hn::MulAdd(scaled, hn::LoadU(tag, a.weight + i), hn::LoadU(tag, a.bias + i)), tag,
                 out + i);
    }
    for (; i < a.d; ++i) out[i] = (x[i] - mean) * factor * a.weight[i] + a.bias[i];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace triptych
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

namespace triptych {
namespace {

template <typename Args>
int64_t row_width(const Args& a) {
  return a.d;
}
int64_t row_width(const HeadNormArgs& a) { return a.heads * a.head_dim; }

/// A kernel-table entry around a rows function: whole rows a thread, 16384 values at least.
template <typename Args, void (*Rows)(const Args&, int64_t, int64_t)>
void over_rows(const Args& a, const Stream& stream) {
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, row_width(a)));
  stream.pool->parallel_for(a.n, grain, [&](int64_t begin, int64_t end) { Rows(a, begin, end); });
}

}  // namespace

void fill_cpu_norms(KernelTable& table, CpuIsa isa) {
  if (isa >= CpuIsa::kAvx512) {
    table.rms_norm = over_rows<RmsNormArgs, N_AVX3::rms_norm_rows>;
    table.layer_norm = over_rows<LayerNormArgs, N_AVX3::layer_norm_rows>;
    table.head_norm = over_rows<HeadNormArgs, N_AVX3::head_norm_rows>;
  } else if (isa >= CpuIsa::kAvx2) {
    table.rms_norm = over_rows<RmsNormArgs, N_AVX2::rms_norm_rows>;
    table.layer_norm = over_rows<LayerNormArgs, N_AVX2::layer_norm_rows>;
    table.head_norm = over_rows<HeadNormArgs, N_AVX2::head_norm_rows>;
  } else {
    table.rms_norm = over_rows<RmsNormArgs, N_SSSE3::rms_norm_rows>;
    table.layer_norm = over_rows<LayerNormArgs, N_SSSE3::layer_norm_rows>;
    table.head_norm = over_rows<HeadNormArgs, N_SSSE3::head_norm_rows>;
  }
}

}  // namespace triptych
#endif  // HWY_ONCE
