#pragma once

// Naive float64 reference of ops/linear.h.

#include <cmath>
#include <cstdint>
#include <vector>

#include "ops/linear.h"

namespace triptych::ref {

inline double activate(Activation act, double x) {
  switch (act) {
    case Activation::kNone:
      return x;
    case Activation::kGeluErf:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluTanh: {
      const double inner = std::sqrt(2.0 / 3.14159265358979323846) * (x + 0.044715 * x * x * x);
      return 0.5 * x * (1.0 + std::tanh(inner));
    }
    case Activation::kQuickGelu:
      return x / (1.0 + std::exp(-1.702 * x));
    case Activation::kSilu:
      return x / (1.0 + std::exp(-x));
    case Activation::kRelu:
      return x > 0.0 ? x : 0.0;
  }
  return x;
}

/// Values of one product x w^T + bias, and for each the sum of the magnitudes that went into it:
/// rounding errors are proportional to that.
struct Product {
  int64_t m = 0;
  int64_t n = 0;
  std::vector<double> value;
  std::vector<double> magnitude;
};

/// x [m, k] and w [n, k] dense, bias [n] or null.
inline Product product(const std::vector<float>& x, const std::vector<float>& w, const float* bias,
                       int64_t k) {
  Product out;
  out.m = static_cast<int64_t>(x.size()) / k;
  out.n = static_cast<int64_t>(w.size()) / k;
  for (int64_t i = 0; i < out.m; ++i) {
    for (int64_t j = 0; j < out.n; ++j) {
      double sum = 0;
      double magnitude = 0;
      for (int64_t l = 0; l < k; ++l) {
        const double term = static_cast<double>(x[static_cast<size_t>(i * k + l)]) *
                            static_cast<double>(w[static_cast<size_t>(j * k + l)]);
        sum += term;
        magnitude += std::fabs(term);
      }
      if (bias != nullptr) {
        sum += static_cast<double>(bias[j]);
        magnitude += std::fabs(static_cast<double>(bias[j]));
      }
      out.value.push_back(sum);
      out.magnitude.push_back(magnitude);
    }
  }
  return out;
}

}  // namespace triptych::ref
