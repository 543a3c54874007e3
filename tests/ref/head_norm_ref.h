#pragma once

#include "ref/norm_ref.h"

namespace triptych::ref {

/// One row of head norm [heads, head_dim]: every head is an RMS norm of its own, in float64.
inline std::vector<double> head_norm(const float* x, int64_t heads, int64_t head_dim,
                                     const float* weight, double eps) {
  std::vector<double> out;
  for (int64_t h = 0; h < heads; ++h) {
    const std::vector<double> head = rms_norm(x + h * head_dim, head_dim, weight, eps);
    out.insert(out.end(), head.begin(), head.end());
  }
  return out;
}

}  // namespace triptych::ref
