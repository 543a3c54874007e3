#pragma once

#include <vector>

#include "ops/linear.h"

namespace triptych {

/// A matrix product with its weight. What the weight looks like in memory (dense 16-bit now,
/// integer blocks or a share of a matrix later) is known here and below only.
class Linear {
 public:
  Linear() = default;
  Linear(PackedWeight weight, std::vector<float> bias) : weight_(weight), bias_(std::move(bias)) {}

  int64_t n_in() const { return weight_.k; }
  int64_t n_out() const { return weight_.n; }
  const PackedWeight& weight() const { return weight_; }

  /// x [M, n_in] -> out [M, n_out], through `act`, plus `residual` when given (may be out).
  Status forward(const OpContext& ctx, const View& x, const View& out,
                 Activation act = Activation::kNone, const View* residual = nullptr) const {
    return linear(ctx, x, weight_, {.bias = bias(), .residual = residual, .act = act}, out);
  }
  /// A fused gate and up product: x [M, n_in] -> out [M, n_out / 2] = act(gate) * up.
  Status forward_gated(const OpContext& ctx, const View& x, const View& out, Activation act) const {
    return linear(ctx, x, weight_, {.bias = bias(), .act = act, .gated = true}, out);
  }
  size_t scratch_bytes(int64_t m) const {
    // f32 activations are the larger of the two modes.
    return linear_scratch_bytes(m, weight_.k, MatmulMode::kF32) + 4096;
  }
  OpCost cost(int64_t m) const { return linear_cost(m, weight_); }

 private:
  const float* bias() const { return bias_.empty() ? nullptr : bias_.data(); }

  PackedWeight weight_;
  std::vector<float> bias_;  ///< [n_out] in packed-row order, or empty
};

}  // namespace triptych
