#pragma once

#include <string>
#include <vector>

#include "models/weight_store.h"
#include "ops/norm.h"

namespace triptych {

/// LayerNorm with weight and bias.
class LayerNorm {
 public:
  LayerNorm() = default;
  /// Binds `prefix`.weight and `prefix`.bias of d elements.
  static Result<LayerNorm> load(WeightStore& store, const std::string& prefix, int64_t d,
                                float eps) {
    LayerNorm norm;
    norm.eps_ = eps;
    TRIPTYCH_ASSIGN_OR_RETURN(norm.weight_, store.vector(prefix + ".weight", Shape{d}));
    TRIPTYCH_ASSIGN_OR_RETURN(norm.bias_, store.vector(prefix + ".bias", Shape{d}));
    return norm;
  }
  /// x [n, d] -> out [n, d]; out may be x.
  Status forward(const OpContext& ctx, const View& x, const View& out) const {
    return layer_norm(ctx, x, weight_.data(), bias_.data(), eps_, out);
  }

 private:
  std::vector<float> weight_;
  std::vector<float> bias_;
  float eps_ = 0;
};

/// RMSNorm with weight.
class RmsNorm {
 public:
  RmsNorm() = default;
  static Result<RmsNorm> load(WeightStore& store, const std::string& prefix, int64_t d, float eps) {
    RmsNorm norm;
    norm.eps_ = eps;
    TRIPTYCH_ASSIGN_OR_RETURN(norm.weight_, store.vector(prefix + ".weight", Shape{d}));
    return norm;
  }
  /// x [n, d] -> out [n, d]; out may be x.
  Status forward(const OpContext& ctx, const View& x, const View& out) const {
    return rms_norm(ctx, x, weight_.data(), eps_, out);
  }

 private:
  std::vector<float> weight_;
  float eps_ = 0;
};

}  // namespace triptych
