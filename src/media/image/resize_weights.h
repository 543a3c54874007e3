#pragma once

#include <cstdint>
#include <vector>

#include "media/image/resize.h"

namespace triptych {

/// Fractional bits of a weight: 8-bit samples times weights summing to 1 stay within 32 bits with
/// room for the overshoot of negative lobes (Pillow's PRECISION_BITS).
inline constexpr int kWeightBits = 22;
/// Weights of one output are padded with zeros to a multiple of this, so that kernels read whole
/// vectors; samples that go with them are read, too, so rows need as many bytes behind their end.
inline constexpr int64_t kWeightPadding = 16;

/// How one axis is resampled: output i is the sum over k < count[i] of
/// weights[i * stride + k] * sample[start[i] + k], rounded, in fixed point. For kNearest there are
/// no weights and count is 1.
struct AxisWeights {
  bool identity = false;  ///< output equals input: the pass is left out
  int64_t stride = 0;
  std::vector<int32_t> start;
  std::vector<int32_t> count;
  std::vector<int32_t> weights;

  int64_t n_out() const { return static_cast<int64_t>(start.size()); }
  /// Input samples [first, end) that any output reads.
  int64_t first_in() const;
  int64_t end_in() const;
};

/// Weights for outputs [begin, begin + n) of resizing n_in samples to n_out, as Pillow computes
/// them (libImaging/Resample.c: support scaled when shrinking, double arithmetic, rounding half
/// away).
AxisWeights make_axis_weights(int64_t n_in, int64_t n_out, int64_t begin, int64_t n,
                              ResampleFilter filter);

}  // namespace triptych
