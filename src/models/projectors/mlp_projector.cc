#include "models/projectors/mlp_projector.h"

namespace triptych {
namespace {

class MlpProjector : public Projector {
 public:
  MlpProjector(Activation act, Linear first, Linear second)
      : act_(act), first_(std::move(first)), second_(std::move(second)) {}

  Status forward(const OpContext& ctx, const View& features, const View& out) const override {
    const ArenaScope scope(*ctx.scratch);
    TRIPTYCH_ASSIGN_OR_RETURN(
        View hidden, ctx.scratch->allocate(DType::kF32, Shape{features.shape[0], first_.n_out()}));
    TRIPTYCH_RETURN_IF_ERROR(first_.forward(ctx, features, hidden, act_));
    return second_.forward(ctx, hidden, out);
  }
  size_t workspace_bytes(int64_t n_rows) const override {
    return static_cast<size_t>(n_rows * first_.n_out() * 4) +
           std::max(first_.scratch_bytes(n_rows), second_.scratch_bytes(n_rows));
  }
  OpCost cost(int64_t n_rows) const override {
    OpCost total = first_.cost(n_rows);
    total += second_.cost(n_rows);
    return total;
  }

 private:
  Activation act_;
  Linear first_;
  Linear second_;
};

}  // namespace

Result<std::unique_ptr<Projector>> load_mlp_projector(const ProjectorSpec& spec, int64_t n_in,
                                                      int64_t n_out, WeightStore& store) {
  TRIPTYCH_ASSIGN_OR_RETURN(Linear first,
                            store.linear({"proj.linear_1"}, {n_out}, n_in, spec.bias));
  TRIPTYCH_ASSIGN_OR_RETURN(Linear second,
                            store.linear({"proj.linear_2"}, {n_out}, n_out, spec.bias));
  return std::unique_ptr<Projector>(
      std::make_unique<MlpProjector>(spec.act, std::move(first), std::move(second)));
}

}  // namespace triptych
