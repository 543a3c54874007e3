#include "models/decoders/llama_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/layers/norm_layer.h"
#include "models/layers/rope_table.h"
#include "ops/attention.h"
#include "ops/embedding.h"
#include "ops/rope.h"
#include "ops/rows.h"

namespace triptych {
namespace {

struct Block {
  RmsNorm input_norm;
  Linear qkv;
  Linear o_proj;
  RmsNorm post_attention_norm;
  Linear gate_up;
  Linear down_proj;
};

Result<Block> load_block(const TextSpec& spec, WeightStore& store, int64_t index) {
  const int64_t d = spec.hidden_size;
  const int64_t q = spec.n_heads * spec.head_dim;
  const int64_t kv = spec.n_kv_heads * spec.head_dim;
  const std::string p = fmt::format("text.layers.{}.", index);
  const std::string a = p + "self_attn.";
  const std::string m = p + "mlp.";
  const float eps = spec.rms_norm_eps;
  Block b;
  TRIPTYCH_ASSIGN_OR_RETURN(b.input_norm, RmsNorm::load(store, p + "input_layernorm", d, eps));
  TRIPTYCH_ASSIGN_OR_RETURN(b.qkv, store.linear({a + "q_proj", a + "k_proj", a + "v_proj"},
                                                {q, kv, kv}, d, spec.qkv_bias));
  TRIPTYCH_ASSIGN_OR_RETURN(b.o_proj, store.linear({a + "o_proj"}, {d}, q, spec.output_bias));
  TRIPTYCH_ASSIGN_OR_RETURN(b.post_attention_norm,
                            RmsNorm::load(store, p + "post_attention_layernorm", d, eps));
  TRIPTYCH_ASSIGN_OR_RETURN(b.gate_up, store.gated(m + "gate_proj", m + "up_proj",
                                                   spec.intermediate_size, d, spec.mlp_bias));
  TRIPTYCH_ASSIGN_OR_RETURN(
      b.down_proj, store.linear({m + "down_proj"}, {d}, spec.intermediate_size, spec.mlp_bias));
  return b;
}

class LlamaDecoder : public Decoder {
 public:
  static Result<std::unique_ptr<Decoder>> load(const TextSpec& spec, WeightStore& store);

  Status embed(const OpContext& ctx, const int32_t* ids, const View& out) const override {
    return embedding(ctx, embed_tokens_.weight(), ids, out);
  }
  Status forward(const OpContext& ctx, const DecoderBatch& batch,
                 const View& logits) const override;
  size_t workspace_bytes(int64_t n_rows, int64_t n_logit_rows) const override;
  OpCost cost(int64_t n_rows, int64_t kv_len, int64_t n_logit_rows, DType kv_dtype) const override;
  DType weight_dtype() const override { return blocks_.front().qkv.weight().dtype; }

 private:
  explicit LlamaDecoder(const TextSpec& spec) : spec_(spec) {}
  Status attend(const OpContext& ctx, const DecoderBatch& batch, const RopeTable& rope_table,
                int64_t layer, const View& x) const;
  Status run_block(const OpContext& ctx, const DecoderBatch& batch, const RopeTable& rope_table,
                   int64_t layer) const;
  int64_t q_width() const { return spec_.n_heads * spec_.head_dim; }
  int64_t kv_width() const { return spec_.n_kv_heads * spec_.head_dim; }
  const Linear& head() const { return lm_head_.n_out() > 0 ? lm_head_ : embed_tokens_; }

  TextSpec spec_;
  Linear embed_tokens_;
  std::vector<Block> blocks_;
  RmsNorm norm_;
  Linear lm_head_;  ///< empty when tied
};

Result<std::unique_ptr<Decoder>> LlamaDecoder::load(const TextSpec& spec, WeightStore& store) {
  std::unique_ptr<LlamaDecoder> decoder(new LlamaDecoder(spec));
  store.begin_part("decoder");
  TRIPTYCH_ASSIGN_OR_RETURN(decoder->embed_tokens_, store.table("text.embed_tokens.weight",
                                                                spec.vocab_size, spec.hidden_size));
  for (int64_t i = 0; i < spec.n_layers; ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(Block block, load_block(spec, store, i));
    decoder->blocks_.push_back(std::move(block));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(decoder->norm_,
                            RmsNorm::load(store, "text.norm", spec.hidden_size, spec.rms_norm_eps));
  // Tied by evidence: released checkpoints carry wrong flags, a stored head is always right.
  if (store.has("lm_head.weight") || !spec.tied) {
    store.begin_part("lm_head");
    TRIPTYCH_ASSIGN_OR_RETURN(
        decoder->lm_head_, store.linear({"lm_head"}, {spec.vocab_size}, spec.hidden_size, false));
  }
  return std::unique_ptr<Decoder>(std::move(decoder));
}

Status LlamaDecoder::attend(const OpContext& ctx, const DecoderBatch& batch,
                            const RopeTable& rope_table, int64_t layer, const View& x) const {
  const Block& block = blocks_[static_cast<size_t>(layer)];
  const int64_t n = x.shape[0];
  const int64_t width = q_width() + 2 * kv_width();
  const ArenaScope scope(*ctx.scratch);
  TRIPTYCH_ASSIGN_OR_RETURN(View qkv, ctx.scratch->allocate(DType::kF32, Shape{n, width}));
  TRIPTYCH_ASSIGN_OR_RETURN(View mixed, ctx.scratch->allocate(DType::kF32, Shape{n, q_width()}));
  TRIPTYCH_RETURN_IF_ERROR(block.qkv.forward(ctx, x, qkv));
  // Query and key heads lie side by side, so one call rotates both.
  TRIPTYCH_RETURN_IF_ERROR(rope(ctx, {.x = qkv.f32(),
                                      .ldx = width,
                                      .n = n,
                                      .heads = spec_.n_heads + spec_.n_kv_heads,
                                      .head_dim = spec_.head_dim,
                                      .rot = 2 * rope_table.cos.shape[1],
                                      .cos = rope_table.cos.f32(),
                                      .sin = rope_table.sin.f32()}));
  const KvLayer& cache = batch.kv_layers[layer];
  TRIPTYCH_RETURN_IF_ERROR(kv_write(ctx, {.k = qkv.f32() + q_width(),
                                          .ldk = width,
                                          .v = qkv.f32() + q_width() + kv_width(),
                                          .ldv = width,
                                          .cache = cache,
                                          .sequences = batch.sequences,
                                          .n_sequences = batch.n_sequences}));
  TRIPTYCH_RETURN_IF_ERROR(
      paged_attention(ctx, {.q = qkv.f32(),
                            .ldq = width,
                            .n_heads = spec_.n_heads,
                            .cache = cache,
                            .sequences = batch.sequences,
                            .n_sequences = batch.n_sequences,
                            .scale = 1.0f / std::sqrt(static_cast<float>(spec_.head_dim)),
                            .out = mixed.f32(),
                            .ldo = q_width(),
                            .window = spec_.windows[static_cast<size_t>(layer)]}));
  return block.o_proj.forward(ctx, mixed, batch.hidden, Activation::kNone, &batch.hidden);
}

Status LlamaDecoder::run_block(const OpContext& ctx, const DecoderBatch& batch,
                               const RopeTable& rope_table, int64_t layer) const {
  const Block& block = blocks_[static_cast<size_t>(layer)];
  const int64_t n = batch.hidden.shape[0];
  const ArenaScope scope(*ctx.scratch);
  TRIPTYCH_ASSIGN_OR_RETURN(View x, ctx.scratch->allocate(DType::kF32, batch.hidden.shape));
  TRIPTYCH_RETURN_IF_ERROR(block.input_norm.forward(ctx, batch.hidden, x));
  TRIPTYCH_RETURN_IF_ERROR(attend(ctx, batch, rope_table, layer, x));
  TRIPTYCH_RETURN_IF_ERROR(block.post_attention_norm.forward(ctx, batch.hidden, x));
  TRIPTYCH_ASSIGN_OR_RETURN(
      View wide, ctx.scratch->allocate(DType::kF32, Shape{n, block.gate_up.n_out() / 2}));
  TRIPTYCH_RETURN_IF_ERROR(block.gate_up.forward_gated(ctx, x, wide, spec_.act));
  wide.shape = Shape{n, spec_.intermediate_size};  // without the padding to whole panels
  return block.down_proj.forward(ctx, wide, batch.hidden, Activation::kNone, &batch.hidden);
}

Status LlamaDecoder::forward(const OpContext& ctx, const DecoderBatch& batch,
                             const View& logits) const {
  if (batch.hidden.shape.rank() != 2 || batch.hidden.shape[1] != spec_.hidden_size ||
      logits.shape != Shape{batch.n_logit_rows, spec_.vocab_size}) {
    return internal_error(fmt::format("decoder: hidden {}, logits {} for {} rows",
                                      batch.hidden.shape.to_string(), logits.shape.to_string(),
                                      batch.n_logit_rows));
  }
  const ArenaScope scope(*ctx.scratch);
  TRIPTYCH_ASSIGN_OR_RETURN(
      const RopeTable rope_table,
      make_rope_table(ctx, spec_.rope, batch.positions, batch.hidden.shape[0]));
  for (int64_t layer = 0; layer < spec_.n_layers; ++layer) {
    TRIPTYCH_RETURN_IF_ERROR(run_block(ctx, batch, rope_table, layer));
    if (ctx.registry->has_tap()) {
      ctx.registry->tap(fmt::format("decoder.block.{}", layer), batch.hidden);
    }
  }
  if (batch.n_logit_rows == 0) return Status::ok();
  TRIPTYCH_ASSIGN_OR_RETURN(
      View last, ctx.scratch->allocate(DType::kF32, Shape{batch.n_logit_rows, spec_.hidden_size}));
  TRIPTYCH_RETURN_IF_ERROR(
      gather_rows(ctx, batch.hidden, batch.logit_rows, batch.n_logit_rows, last, nullptr));
  TRIPTYCH_RETURN_IF_ERROR(norm_.forward(ctx, last, last));
  ctx.registry->tap("decoder.norm", last);
  return head().forward(ctx, last, logits);
}

size_t LlamaDecoder::workspace_bytes(int64_t n_rows, int64_t n_logit_rows) const {
  const int64_t d = spec_.hidden_size;
  const int64_t attention = 2 * q_width() + 2 * kv_width();
  const int64_t rope_width = static_cast<int64_t>(2 * spec_.rope.inv_freq.size());
  const int64_t row = rope_width + d + std::max(attention, spec_.intermediate_size + kPanelRows);
  const int64_t deepest = std::max({d, q_width(), spec_.intermediate_size});
  return static_cast<size_t>(n_rows * row * 4 + n_logit_rows * d * 4) +
         linear_scratch_bytes(std::max(n_rows, n_logit_rows), deepest, MatmulMode::kF32) +
         (64 << 10);
}

OpCost LlamaDecoder::cost(int64_t n_rows, int64_t kv_len, int64_t n_logit_rows,
                          DType kv_dtype) const {
  OpCost total;
  const int64_t pairs = n_rows * (kv_len - n_rows) + n_rows * (n_rows + 1) / 2;
  for (const Block& b : blocks_) {
    for (const Linear* layer : {&b.qkv, &b.o_proj, &b.gate_up, &b.down_proj}) {
      total += layer->cost(n_rows);
    }
    total +=
        attention_cost(pairs, spec_.n_heads, spec_.n_kv_heads, spec_.head_dim, kv_len, kv_dtype);
    total += norm_cost(2 * n_rows, spec_.hidden_size);
  }
  if (n_logit_rows > 0) total += head().cost(n_logit_rows);
  return total;
}

}  // namespace

Result<std::unique_ptr<Decoder>> load_llama_decoder(const TextSpec& spec, WeightStore& store) {
  return LlamaDecoder::load(spec, store);
}

}  // namespace triptych
