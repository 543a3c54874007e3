#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace triptych::ref {

/// One row of RMS norm: x / sqrt(mean(x^2) + eps) * weight, in float64.
inline std::vector<double> rms_norm(const float* x, int64_t d, const float* weight, double eps) {
  double squares = 0;
  for (int64_t i = 0; i < d; ++i) squares += static_cast<double>(x[i]) * x[i];
  const double root = std::sqrt(squares / static_cast<double>(d) + eps);
  std::vector<double> out(static_cast<size_t>(d));
  for (int64_t i = 0; i < d; ++i) out[static_cast<size_t>(i)] = x[i] / root * weight[i];
  return out;
}

/// One row of layer norm: (x - mean) / sqrt(biased variance + eps) * weight + bias, in float64.
inline std::vector<double> layer_norm(const float* x, int64_t d, const float* weight,
                                      const float* bias, double eps) {
  double mean = 0;
  for (int64_t i = 0; i < d; ++i) mean += x[i];
  mean /= static_cast<double>(d);
  double variance = 0;
  for (int64_t i = 0; i < d; ++i) variance += (x[i] - mean) * (x[i] - mean);
  variance /= static_cast<double>(d);
  std::vector<double> out(static_cast<size_t>(d));
  for (int64_t i = 0; i < d; ++i) {
    out[static_cast<size_t>(i)] = (x[i] - mean) / std::sqrt(variance + eps) * weight[i] + bias[i];
  }
  return out;
}

}  // namespace triptych::ref
