#include "models/layers/gated_mlp.h"

namespace triptych {

Result<GatedMlp> GatedMlp::load(const TextSpec& spec, WeightStore& store,
                                const std::string& prefix) {
  GatedMlp mlp;
  mlp.intermediate_size_ = spec.intermediate_size;
  mlp.act_ = spec.act;
  TRIPTYCH_ASSIGN_OR_RETURN(
      mlp.gate_up_, store.gated(prefix + "gate_proj", prefix + "up_proj", spec.intermediate_size,
                                spec.hidden_size, spec.mlp_bias));
  TRIPTYCH_ASSIGN_OR_RETURN(mlp.down_, store.linear({prefix + "down_proj"}, {spec.hidden_size},
                                                    spec.intermediate_size, spec.mlp_bias));
  return mlp;
}

Status GatedMlp::add_to(const OpContext& ctx, const View& x, const View& residual) const {
  const int64_t n = x.shape[0];
  const ArenaScope scope(*ctx.scratch);
  TRIPTYCH_ASSIGN_OR_RETURN(View wide,
                            ctx.scratch->allocate(DType::kF32, Shape{n, gate_up_.n_out() / 2}));
  TRIPTYCH_RETURN_IF_ERROR(gate_up_.forward_gated(ctx, x, wide, act_));
  wide.shape = Shape{n, intermediate_size_};  // without the padding to whole panels
  return down_.forward(ctx, wide, residual, Activation::kNone, &residual);
}

int64_t GatedMlp::scratch_width(const TextSpec& spec) {
  return spec.intermediate_size + kPanelRows;  // room for the padding to whole panels
}

OpCost GatedMlp::cost(int64_t n_rows) const {
  OpCost total = gate_up_.cost(n_rows);
  total += down_.cost(n_rows);
  return total;
}

}  // namespace triptych
