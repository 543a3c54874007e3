#include "models/towers/vision/vit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/layers/norm_layer.h"
#include "ops/attention.h"
#include "ops/rows.h"

namespace triptych {
namespace {

struct Block {
  LayerNorm norm1;
  Linear qkv;
  Linear out_proj;
  LayerNorm norm2;
  Linear fc1;
  Linear fc2;
};

Result<Block> load_block(const VisionSpec& spec, WeightStore& store, int64_t index) {
  const int64_t d = spec.hidden_size;
  const std::string p = fmt::format("vision.encoder.layers.{}.", index);
  const std::string a = p + "self_attn.";
  Block b;
  TRIPTYCH_ASSIGN_OR_RETURN(b.norm1,
                            LayerNorm::load(store, p + "layer_norm1", d, spec.layer_norm_eps));
  TRIPTYCH_ASSIGN_OR_RETURN(
      b.qkv, store.linear({a + "q_proj", a + "k_proj", a + "v_proj"}, {d, d, d}, d, true));
  TRIPTYCH_ASSIGN_OR_RETURN(b.out_proj, store.linear({a + "out_proj"}, {d}, d, true));
  TRIPTYCH_ASSIGN_OR_RETURN(b.norm2,
                            LayerNorm::load(store, p + "layer_norm2", d, spec.layer_norm_eps));
  TRIPTYCH_ASSIGN_OR_RETURN(b.fc1,
                            store.linear({p + "mlp.fc1"}, {spec.intermediate_size}, d, true));
  TRIPTYCH_ASSIGN_OR_RETURN(b.fc2,
                            store.linear({p + "mlp.fc2"}, {d}, spec.intermediate_size, true));
  return b;
}

class Vit : public VisionTower {
 public:
  static Result<std::unique_ptr<VisionTower>> load(const VisionSpec& spec, WeightStore& store);

  int64_t n_blocks() const override { return static_cast<int64_t>(blocks_.size()); }
  Status start(const OpContext& ctx, const View& pixels, EncodeState& state) const override;
  Status advance(const OpContext& ctx, int64_t max_blocks, EncodeState& state) const override;
  size_t workspace_bytes(int n_threads) const override;
  OpCost cost() const override;

 private:
  explicit Vit(const VisionSpec& spec) : spec_(spec) {}
  Status run_block(const OpContext& ctx, const Block& block, const View& hidden) const;
  Status take_features(const OpContext& ctx, int64_t layer, const EncodeState& state) const;

  VisionSpec spec_;
  Linear patch_embedding_;
  std::vector<float> class_row_;  ///< class embedding plus its position, [1, D] or empty
  std::vector<float> positions_;  ///< [n_patches, D]
  LayerNorm pre_norm_;
  std::vector<Block> blocks_;
};

Result<std::unique_ptr<VisionTower>> Vit::load(const VisionSpec& spec, WeightStore& store) {
  std::unique_ptr<Vit> vit(new Vit(spec));
  const int64_t d = spec.hidden_size;
  TRIPTYCH_ASSIGN_OR_RETURN(
      vit->patch_embedding_,
      store.flattened("vision.embeddings.patch_embedding",
                      Shape{d, spec.channels, spec.patch_size, spec.patch_size}, spec.patch_bias));
  TRIPTYCH_ASSIGN_OR_RETURN(
      std::vector<float> positions,
      store.vector("vision.embeddings.position_embedding.weight", Shape{spec.n_positions(), d}));
  if (spec.class_token) {
    TRIPTYCH_ASSIGN_OR_RETURN(vit->class_row_,
                              store.vector("vision.embeddings.class_embedding", Shape{d}));
    for (size_t i = 0; i < vit->class_row_.size(); ++i) vit->class_row_[i] += positions[i];
    positions.erase(positions.begin(), positions.begin() + d);
  }
  vit->positions_ = std::move(positions);
  if (spec.pre_norm) {
    TRIPTYCH_ASSIGN_OR_RETURN(
        vit->pre_norm_, LayerNorm::load(store, "vision.pre_layrnorm", d, spec.layer_norm_eps));
  }
  for (int64_t i = 0; i < spec.n_blocks_run(); ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(Block block, load_block(spec, store, i));
    vit->blocks_.push_back(std::move(block));
  }
  return std::unique_ptr<VisionTower>(std::move(vit));
}

Status Vit::start(const OpContext& ctx, const View& pixels, EncodeState& state) const {
  const int64_t d = spec_.hidden_size;
  if (pixels.shape != Shape{spec_.channels, spec_.image_size, spec_.image_size}) {
    return internal_error(fmt::format("vision_tower: pixels {}, expected [{}, {}, {}]",
                                      pixels.shape.to_string(), spec_.channels, spec_.image_size,
                                      spec_.image_size));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(state.hidden,
                            Tensor::allocate(DType::kF32, Shape{spec_.n_positions(), d}, true));
  TRIPTYCH_ASSIGN_OR_RETURN(
      state.features,
      Tensor::allocate(DType::kF32, Shape{spec_.n_features(), spec_.feature_width()}));
  state.next_block = 0;
  const ArenaScope scope(*ctx.scratch);
  TRIPTYCH_ASSIGN_OR_RETURN(
      View patches, ctx.scratch->allocate(
                        DType::kF32, Shape{spec_.n_patches(),
                                           spec_.channels * spec_.patch_size * spec_.patch_size}));
  TRIPTYCH_RETURN_IF_ERROR(patchify(ctx, pixels, spec_.patch_size, patches));
  const View hidden = state.hidden.view();
  if (spec_.class_token) {
    const View row = View::dense(const_cast<float*>(class_row_.data()), DType::kF32, Shape{1, d});
    TRIPTYCH_RETURN_IF_ERROR(gather_rows(ctx, row, nullptr, 1, hidden, nullptr));
  }
  const View body = hidden.rows(spec_.class_token ? 1 : 0, spec_.n_patches());
  const View positions =
      View::dense(const_cast<float*>(positions_.data()), DType::kF32, Shape{spec_.n_patches(), d});
  TRIPTYCH_RETURN_IF_ERROR(
      patch_embedding_.forward(ctx, patches, body, Activation::kNone, &positions));
  if (spec_.pre_norm) TRIPTYCH_RETURN_IF_ERROR(pre_norm_.forward(ctx, hidden, hidden));
  ctx.registry->tap("vision_tower.embeddings", hidden);
  return take_features(ctx, 0, state);
}

Status Vit::take_features(const OpContext& ctx, int64_t layer, const EncodeState& state) const {
  const int64_t d = spec_.hidden_size;
  const View rows = state.hidden.view().rows(spec_.drop_first_row ? 1 : 0, spec_.n_features());
  for (size_t i = 0; i < spec_.feature_layers.size(); ++i) {
    if (spec_.feature_layers[i] != layer) continue;
    View column = state.features.view();
    column.data = column.f32() + static_cast<int64_t>(i) * d;
    column.shape = Shape{spec_.n_features(), d};
    TRIPTYCH_RETURN_IF_ERROR(gather_rows(ctx, rows, nullptr, spec_.n_features(), column, nullptr));
  }
  return Status::ok();
}

Status Vit::advance(const OpContext& ctx, int64_t max_blocks, EncodeState& state) const {
  const int64_t end = std::min(n_blocks(), state.next_block + max_blocks);
  const View hidden = state.hidden.view();
  while (state.next_block < end) {
    TRIPTYCH_RETURN_IF_ERROR(
        run_block(ctx, blocks_[static_cast<size_t>(state.next_block)], hidden));
    if (ctx.registry->has_tap()) {
      ctx.registry->tap(fmt::format("vision_tower.block.{}", state.next_block), hidden);
    }
    ++state.next_block;
    TRIPTYCH_RETURN_IF_ERROR(take_features(ctx, state.next_block, state));
  }
  return Status::ok();
}

Status Vit::run_block(const OpContext& ctx, const Block& block, const View& hidden) const {
  const int64_t n = hidden.shape[0];
  const int64_t d = spec_.hidden_size;
  const int64_t head_dim = d / spec_.n_heads;
  const ArenaScope scope(*ctx.scratch);
  TRIPTYCH_ASSIGN_OR_RETURN(View x, ctx.scratch->allocate(DType::kF32, Shape{n, d}));
  {
    const ArenaScope attention_scope(*ctx.scratch);
    TRIPTYCH_ASSIGN_OR_RETURN(View qkv, ctx.scratch->allocate(DType::kF32, Shape{n, 3 * d}));
    TRIPTYCH_RETURN_IF_ERROR(block.norm1.forward(ctx, hidden, x));
    TRIPTYCH_RETURN_IF_ERROR(block.qkv.forward(ctx, x, qkv));
    const int32_t segments[2] = {0, static_cast<int32_t>(n)};
    TRIPTYCH_RETURN_IF_ERROR(
        segment_attention(ctx, {.q = qkv.f32(),
                                .k = qkv.f32() + d,
                                .v = qkv.f32() + 2 * d,
                                .ld = 3 * d,
                                .n_heads = spec_.n_heads,
                                .head_dim = head_dim,
                                .segment_starts = segments,
                                .n_segments = 1,
                                .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
                                .out = x.f32(),
                                .ldo = d,
                                .scratch = nullptr}));
  }
  TRIPTYCH_RETURN_IF_ERROR(block.out_proj.forward(ctx, x, hidden, Activation::kNone, &hidden));
  TRIPTYCH_RETURN_IF_ERROR(block.norm2.forward(ctx, hidden, x));
  TRIPTYCH_ASSIGN_OR_RETURN(View wide,
                            ctx.scratch->allocate(DType::kF32, Shape{n, spec_.intermediate_size}));
  TRIPTYCH_RETURN_IF_ERROR(block.fc1.forward(ctx, x, wide, spec_.act));
  return block.fc2.forward(ctx, wide, hidden, Activation::kNone, &hidden);
}

size_t Vit::workspace_bytes(int n_threads) const {
  const int64_t n = spec_.n_positions();
  const int64_t d = spec_.hidden_size;
  const int64_t patch_width = spec_.channels * spec_.patch_size * spec_.patch_size;
  const int64_t widest = std::max({4 * d, d + spec_.intermediate_size, patch_width});
  const int64_t deepest = std::max({d, spec_.intermediate_size, patch_width});
  return static_cast<size_t>(n * widest * 4) +
         std::max(linear_scratch_bytes(n, deepest, MatmulMode::kF32),
                  segment_attention_scratch_bytes(n, spec_.n_heads, d / spec_.n_heads, n_threads)) +
         (64 << 10);
}

OpCost Vit::cost() const {
  const int64_t n = spec_.n_positions();
  const int64_t head_dim = spec_.hidden_size / spec_.n_heads;
  OpCost total = patch_embedding_.cost(spec_.n_patches());
  for (const Block& b : blocks_) {
    for (const Linear* layer : {&b.qkv, &b.out_proj, &b.fc1, &b.fc2}) total += layer->cost(n);
    total += attention_cost(n * n, spec_.n_heads, spec_.n_heads, head_dim, n, DType::kF32);
    total += norm_cost(2 * n, spec_.hidden_size);
  }
  return total;
}

}  // namespace

Result<std::unique_ptr<VisionTower>> load_vit(const VisionSpec& spec, WeightStore& store) {
  return Vit::load(spec, store);
}

}  // namespace triptych
