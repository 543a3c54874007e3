#pragma once

#include "ops/op_context.h"

namespace triptych {

/// RMS norm of each head by itself, in place: x = x / sqrt(mean(x^2) + eps) * weight over the
/// head's elements, one weight for all heads. Queries and keys before RoPE: Henry et al.,
/// "Query-Key Normalization for Transformers", 2020, with RMS as in Zhang and Sennrich, 2019.
struct HeadNormArgs {
  float* x;  ///< [n, heads, head_dim]; rows ldx apart, heads head_dim apart
  int64_t ldx;
  int64_t n;
  int64_t heads;
  int64_t head_dim;
  const float* weight;  ///< [head_dim]
  float eps;
};

/// Rows may be wider than their heads (ldx at least heads * head_dim); the rest is left alone.
Status head_norm(const OpContext& ctx, const HeadNormArgs& args);

OpCost head_norm_cost(int64_t n, int64_t heads, int64_t head_dim);

}  // namespace triptych
