#pragma once

#include "ops/op_context.h"

namespace triptych {

/// out = x / sqrt(mean(x^2) + eps) * weight, rows of length d. Sums in f32 or wider.
/// Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
struct RmsNormArgs {
  const float* x;
  int64_t ldx;
  int64_t n;
  int64_t d;
  const float* weight;  ///< [d]
  float eps;
  float* out;  ///< may be x
  int64_t ldo;
};

/// out = (x - mean) / sqrt(var + eps) * weight + bias, rows of length d, biased variance.
struct LayerNormArgs {
  const float* x;
  int64_t ldx;
  int64_t n;
  int64_t d;
  const float* weight;  ///< [d]
  const float* bias;    ///< [d]
  float eps;
  float* out;  ///< may be x
  int64_t ldo;
};

/// x and out [n, d] f32 (row strides free), weight [d].
Status rms_norm(const OpContext& ctx, const View& x, const float* weight, float eps,
                const View& out);
Status layer_norm(const OpContext& ctx, const View& x, const float* weight, const float* bias,
                  float eps, const View& out);

OpCost norm_cost(int64_t n, int64_t d);

}  // namespace triptych
