#pragma once

#include <memory>

#include "models/model.h"

namespace triptych {

/// linear -> activation -> linear, LLaVA-1.5's projector. Tensors proj.linear_1, proj.linear_2.
/// transformers' LlavaMultiModalProjector.
Result<std::unique_ptr<Projector>> load_mlp_projector(const ProjectorSpec& spec, int64_t n_in,
                                                      int64_t n_out, WeightStore& store);

}  // namespace triptych
