#pragma once

#include <memory>

#include "models/model.h"

namespace triptych {

/// A pre-norm ViT with learned absolute positions, as CLIP (class token, norm before the first
/// block, quick GELU) and SigLIP (neither, tanh GELU) have it. Features are hidden states before
/// any final norm, at the layers of the spec.
/// Tensors under "vision."; transformers' modeling_clip.py and modeling_siglip.py.
Result<std::unique_ptr<VisionTower>> load_vit(const VisionSpec& spec, WeightStore& store);

}  // namespace triptych
