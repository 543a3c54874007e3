#pragma once

#include <cstdint>
#include <vector>

namespace triptych::ref {

/// One head of rotary embedding, half-split pairs over the first `rot` of `head_dim` elements:
/// x cos + rotate_half(x) sin, in float64.
inline std::vector<double> rope_head(const float* x, int64_t head_dim, int64_t rot,
                                     const float* cos, const float* sin) {
  std::vector<double> out(x, x + head_dim);
  const int64_t half = rot / 2;
  for (int64_t i = 0; i < rot; ++i) {
    const double rotated = i < half ? -static_cast<double>(x[i + half]) : x[i - half];
    out[static_cast<size_t>(i)] =
        static_cast<double>(x[i]) * cos[i % half] + rotated * sin[i % half];
  }
  return out;
}

}  // namespace triptych::ref
