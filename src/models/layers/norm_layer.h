#pragma once

#include <string>
#include <vector>

#include "models/weight_store.h"
#include "ops/head_norm.h"
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

/// RMSNorm of each head by itself, one weight for all heads.
class HeadNorm {
 public:
  HeadNorm() = default;
  static Result<HeadNorm> load(WeightStore& store, const std::string& prefix, int64_t head_dim,
                               float eps) {
    HeadNorm norm;
    norm.eps_ = eps;
    TRIPTYCH_ASSIGN_OR_RETURN(norm.weight_, store.vector(prefix + ".weight", Shape{head_dim}));
    return norm;
  }
  /// x [n, heads, head_dim] in place, rows ldx apart.
  Status forward(const OpContext& ctx, float* x, int64_t ldx, int64_t n, int64_t heads) const {
    return head_norm(ctx, {.x = x,
                           .ldx = ldx,
                           .n = n,
                           .heads = heads,
                           .head_dim = static_cast<int64_t>(weight_.size()),
                           .weight = weight_.data(),
                           .eps = eps_});
  }

 private:
  std::vector<float> weight_;
  float eps_ = 0;
};

}  // namespace triptych
