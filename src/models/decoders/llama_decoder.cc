#include "models/decoders/llama_decoder.h"

#include <fmt/format.h>

#include "models/layers/cached_attention.h"
#include "models/layers/decoder_ends.h"
#include "models/layers/decoder_workspace.h"
#include "models/layers/gated_mlp.h"
#include "models/layers/norm_layer.h"

namespace triptych {
namespace {

struct Block {
  RmsNorm input_norm;
  Linear qkv;
  Linear o_proj;
  RmsNorm post_attention_norm;
  GatedMlp mlp;
};

Result<Block> load_block(const TextSpec& spec, WeightStore& store, int64_t index) {
  const int64_t d = spec.hidden_size;
  const int64_t q = spec.n_heads * spec.head_dim;
  const int64_t kv = spec.n_kv_heads * spec.head_dim;
  const std::string p = fmt::format("text.layers.{}.", index);
  const std::string a = p + "self_attn.";
  const float eps = spec.rms_norm_eps;
  Block b;
  TRIPTYCH_ASSIGN_OR_RETURN(b.input_norm, RmsNorm::load(store, p + "input_layernorm", d, eps));
  TRIPTYCH_ASSIGN_OR_RETURN(b.qkv, store.linear({a + "q_proj", a + "k_proj", a + "v_proj"},
                                                {q, kv, kv}, d, spec.qkv_bias));
  TRIPTYCH_ASSIGN_OR_RETURN(b.o_proj, store.linear({a + "o_proj"}, {d}, q, spec.output_bias));
  TRIPTYCH_ASSIGN_OR_RETURN(b.post_attention_norm,
                            RmsNorm::load(store, p + "post_attention_layernorm", d, eps));
  TRIPTYCH_ASSIGN_OR_RETURN(b.mlp, GatedMlp::load(spec, store, p + "mlp."));
  return b;
}

class LlamaDecoder : public Decoder {
 public:
  static Result<std::unique_ptr<Decoder>> load(const TextSpec& spec, WeightStore& store);

  Status embed(const OpContext& ctx, const int32_t* ids, const View& out) const override {
    return ends_.embed(ctx, ids, out);
  }
  Status forward(const OpContext& ctx, const DecoderBatch& batch,
                 const View& logits) const override;
  size_t workspace_bytes(int64_t n_rows, int64_t n_logit_rows) const override {
    return decoder_workspace_bytes(spec_, n_rows, n_logit_rows);
  }
  OpCost cost(int64_t n_rows, int64_t kv_len, int64_t n_logit_rows, DType kv_dtype) const override;
  DType weight_dtype() const override { return blocks_.front().qkv.weight().dtype; }

 private:
  explicit LlamaDecoder(const TextSpec& spec) : spec_(spec) {}
  Status attend(const OpContext& ctx, const DecoderBatch& batch, const RopeTable& rope_table,
                int64_t layer, const View& x) const;
  Status run_block(const OpContext& ctx, const DecoderBatch& batch, const RopeTable& rope_table,
                   int64_t layer) const;

  TextSpec spec_;
  std::vector<Block> blocks_;
  DecoderEnds ends_;
};

Result<std::unique_ptr<Decoder>> LlamaDecoder::load(const TextSpec& spec, WeightStore& store) {
  std::unique_ptr<LlamaDecoder> decoder(new LlamaDecoder(spec));
  store.begin_part("decoder");
  for (int64_t i = 0; i < spec.n_layers; ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(Block block, load_block(spec, store, i));
    decoder->blocks_.push_back(std::move(block));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(decoder->ends_, DecoderEnds::load(spec, store));
  return std::unique_ptr<Decoder>(std::move(decoder));
}

Status LlamaDecoder::attend(const OpContext& ctx, const DecoderBatch& batch,
                            const RopeTable& rope_table, int64_t layer, const View& x) const {
  const Block& block = blocks_[static_cast<size_t>(layer)];
  const int64_t n = x.shape[0];
  const ArenaScope scope(*ctx.scratch);
  TRIPTYCH_ASSIGN_OR_RETURN(const QkvRows qkv, QkvRows::allocate(ctx, spec_, n));
  TRIPTYCH_ASSIGN_OR_RETURN(
      View mixed, ctx.scratch->allocate(DType::kF32, Shape{n, spec_.n_heads * spec_.head_dim}));
  TRIPTYCH_RETURN_IF_ERROR(block.qkv.forward(ctx, x, qkv.rows));
  TRIPTYCH_RETURN_IF_ERROR(rotate_heads(ctx, rope_table, qkv));
  TRIPTYCH_RETURN_IF_ERROR(
      cached_attention(ctx, batch, layer, spec_.windows[static_cast<size_t>(layer)], qkv, mixed));
  return block.o_proj.forward(ctx, mixed, batch.hidden, Activation::kNone, &batch.hidden);
}

Status LlamaDecoder::run_block(const OpContext& ctx, const DecoderBatch& batch,
                               const RopeTable& rope_table, int64_t layer) const {
  const Block& block = blocks_[static_cast<size_t>(layer)];
  const ArenaScope scope(*ctx.scratch);
  TRIPTYCH_ASSIGN_OR_RETURN(View x, ctx.scratch->allocate(DType::kF32, batch.hidden.shape));
  TRIPTYCH_RETURN_IF_ERROR(block.input_norm.forward(ctx, batch.hidden, x));
  TRIPTYCH_RETURN_IF_ERROR(attend(ctx, batch, rope_table, layer, x));
  TRIPTYCH_RETURN_IF_ERROR(block.post_attention_norm.forward(ctx, batch.hidden, x));
  return block.mlp.add_to(ctx, x, batch.hidden);
}

Status LlamaDecoder::forward(const OpContext& ctx, const DecoderBatch& batch,
                             const View& logits) const {
  TRIPTYCH_RETURN_IF_ERROR(ends_.check(batch, logits));
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
  return ends_.last_logits(ctx, batch, logits);
}

OpCost LlamaDecoder::cost(int64_t n_rows, int64_t kv_len, int64_t n_logit_rows,
                          DType kv_dtype) const {
  OpCost total = ends_.cost(n_logit_rows);
  for (const Block& b : blocks_) {
    total += b.qkv.cost(n_rows);
    total += cached_attention_cost(spec_, n_rows, kv_len, kv_dtype);
    total += b.o_proj.cost(n_rows);
    total += b.mlp.cost(n_rows);
    total += norm_cost(2 * n_rows, spec_.hidden_size);
  }
  return total;
}

}  // namespace

Result<std::unique_ptr<Decoder>> load_llama_decoder(const TextSpec& spec, WeightStore& store) {
  return LlamaDecoder::load(spec, store);
}

}  // namespace triptych
