#pragma once

#include <memory>

#include "models/model.h"

namespace triptych {

/// linear -> LayerNorm, an adapter that is trained on a frozen tower (with dropout behind the norm
/// while training, which inference leaves out). Tensors proj.linear, proj.layer_norm.
Result<std::unique_ptr<Projector>> load_layer_norm_projector(const ProjectorSpec& spec,
                                                             int64_t n_in, int64_t n_out,
                                                             WeightStore& store);

}  // namespace triptych
