#include "models/projectors/layer_norm_projector.h"

#include "models/layers/norm_layer.h"

namespace triptych {
namespace {

class LayerNormProjector : public Projector {
 public:
  LayerNormProjector(Linear linear, LayerNorm norm)
      : linear_(std::move(linear)), norm_(std::move(norm)) {}

  Status forward(const OpContext& ctx, const View& features, const View& out) const override {
    TRIPTYCH_RETURN_IF_ERROR(linear_.forward(ctx, features, out));
    return norm_.forward(ctx, out, out);
  }
  size_t workspace_bytes(int64_t n_rows) const override { return linear_.scratch_bytes(n_rows); }
  OpCost cost(int64_t n_rows) const override {
    OpCost total = linear_.cost(n_rows);
    total += norm_cost(n_rows, linear_.n_out());
    return total;
  }

 private:
  Linear linear_;
  LayerNorm norm_;
};

}  // namespace

Result<std::unique_ptr<Projector>> load_layer_norm_projector(const ProjectorSpec& spec,
                                                             int64_t n_in, int64_t n_out,
                                                             WeightStore& store) {
  TRIPTYCH_ASSIGN_OR_RETURN(Linear linear, store.linear({"proj.linear"}, {n_out}, n_in, spec.bias));
  TRIPTYCH_ASSIGN_OR_RETURN(LayerNorm norm,
                            LayerNorm::load(store, "proj.layer_norm", n_out, spec.layer_norm_eps));
  return std::unique_ptr<Projector>(
      std::make_unique<LayerNormProjector>(std::move(linear), std::move(norm)));
}

}  // namespace triptych
