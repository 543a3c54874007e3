#include "models/layers/cached_attention.h"

#include <cmath>

#include "ops/attention.h"
#include "ops/rope.h"

namespace triptych {

Result<QkvRows> QkvRows::allocate(const OpContext& ctx, const TextSpec& spec, int64_t n) {
  const int64_t width = (spec.n_heads + 2 * spec.n_kv_heads) * spec.head_dim;
  TRIPTYCH_ASSIGN_OR_RETURN(View rows, ctx.scratch->allocate(DType::kF32, Shape{n, width}));
  return QkvRows{rows, spec.n_heads, spec.n_kv_heads, spec.head_dim};
}

Status rotate_heads(const OpContext& ctx, const RopeTable& rope_table, const QkvRows& qkv) {
  // Query and key heads lie side by side, so one call rotates both.
  return rope(ctx, {.x = qkv.q(),
                    .ldx = qkv.ld(),
                    .n = qkv.rows.shape[0],
                    .heads = qkv.n_heads + qkv.n_kv_heads,
                    .head_dim = qkv.head_dim,
                    .rot = 2 * rope_table.cos.shape[1],
                    .cos = rope_table.cos.f32(),
                    .sin = rope_table.sin.f32()});
}

Status cached_attention(const OpContext& ctx, const DecoderBatch& batch, int64_t layer,
                        int64_t window, const QkvRows& qkv, const View& out) {
  const KvLayer& cache = batch.kv_layers[layer];
  TRIPTYCH_RETURN_IF_ERROR(kv_write(ctx, {.k = qkv.k(),
                                          .ldk = qkv.ld(),
                                          .v = qkv.v(),
                                          .ldv = qkv.ld(),
                                          .cache = cache,
                                          .sequences = batch.sequences,
                                          .n_sequences = batch.n_sequences}));
  return paged_attention(ctx, {.q = qkv.q(),
                               .ldq = qkv.ld(),
                               .n_heads = qkv.n_heads,
                               .cache = cache,
                               .sequences = batch.sequences,
                               .n_sequences = batch.n_sequences,
                               .scale = 1.0f / std::sqrt(static_cast<float>(qkv.head_dim)),
                               .out = out.f32(),
                               .ldo = out.strides[0],
                               .window = window});
}

int64_t attention_scratch_width(const TextSpec& spec) {
  return 2 * (spec.n_heads + spec.n_kv_heads) * spec.head_dim;
}

OpCost cached_attention_cost(const TextSpec& spec, int64_t n_rows, int64_t kv_len, DType kv_dtype) {
  const int64_t pairs = n_rows * (kv_len - n_rows) + n_rows * (n_rows + 1) / 2;
  return attention_cost(pairs, spec.n_heads, spec.n_kv_heads, spec.head_dim, kv_len, kv_dtype);
}

}  // namespace triptych
