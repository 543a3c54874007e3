#pragma once

#include <string>

#include "models/spec.h"
#include "models/weight_store.h"

namespace triptych {

/// down(act(gate(x)) * up(x)), with gate and up fused into one product. Shazeer, "GLU Variants
/// Improve Transformer", 2020.
class GatedMlp {
 public:
  GatedMlp() = default;
  /// Binds `prefix`gate_proj, up_proj and down_proj.
  static Result<GatedMlp> load(const TextSpec& spec, WeightStore& store, const std::string& prefix);

  /// residual [n, hidden_size] += mlp(x [n, hidden_size]). Scratch: n rows of scratch_width().
  Status add_to(const OpContext& ctx, const View& x, const View& residual) const;
  static int64_t scratch_width(const TextSpec& spec);
  OpCost cost(int64_t n_rows) const;

 private:
  Linear gate_up_;
  Linear down_;
  int64_t intermediate_size_ = 0;
  Activation act_ = Activation::kSilu;
};

}  // namespace triptych
