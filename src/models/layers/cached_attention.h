#pragma once

#include "models/layers/rope_table.h"
#include "models/model.h"

namespace triptych {

/// Rows that a fused projection makes: query heads, key heads, value heads, side by side.
struct QkvRows {
  View rows;  ///< [n, (n_heads + 2 * n_kv_heads) * head_dim] f32
  int64_t n_heads;
  int64_t n_kv_heads;
  int64_t head_dim;

  static Result<QkvRows> allocate(const OpContext& ctx, const TextSpec& spec, int64_t n);

  int64_t ld() const { return rows.shape[1]; }
  float* q() const { return rows.f32(); }
  float* k() const { return q() + n_heads * head_dim; }
  float* v() const { return k() + n_kv_heads * head_dim; }
};

/// Rotates the query and key heads by the angles of their positions, in place.
Status rotate_heads(const OpContext& ctx, const RopeTable& rope_table, const QkvRows& qkv);

/// Stores the batch's keys and values in the KV pages of `layer`, then lets its queries look at
/// all pages of their sequences, as far back as `window` (0: all). out [n, n_heads * head_dim].
Status cached_attention(const OpContext& ctx, const DecoderBatch& batch, int64_t layer,
                        int64_t window, const QkvRows& qkv, const View& out);

/// Floats a row that QkvRows and the output of cached_attention take.
int64_t attention_scratch_width(const TextSpec& spec);

/// attention_cost of `n_rows` rows of one sequence that ends at `kv_len` cached tokens.
OpCost cached_attention_cost(const TextSpec& spec, int64_t n_rows, int64_t kv_len, DType kv_dtype);

}  // namespace triptych
