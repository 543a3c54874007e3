#pragma once

#include "ops/op_context.h"

namespace triptych {

/// Rotates pairs of the first `rot` elements of each head by the angles of the row's position, in
/// place. Half-split pairs (i, i + rot/2) as Hugging Face checkpoints store them.
/// Su et al., "RoFormer", 2021; transformers' apply_rotary_pos_emb.
struct RopeArgs {
  float* x;  ///< [n, heads, head_dim]; rows ldx apart, heads head_dim apart
  int64_t ldx;
  int64_t n;
  int64_t heads;
  int64_t head_dim;
  int64_t rot;       ///< rotated elements a head, even, at most head_dim
  const float* cos;  ///< [n, rot / 2]
  const float* sin;  ///< [n, rot / 2]
};

Status rope(const OpContext& ctx, const RopeArgs& args);

}  // namespace triptych
