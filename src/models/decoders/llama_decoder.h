#pragma once

#include <memory>

#include "models/model.h"

namespace triptych {

/// The Llama block: RMSNorm, grouped-query attention with half-split RoPE, gated MLP, pre-norm
/// residuals. Serves llama, mistral and qwen2, which differ in biases and windows only.
/// Tensors under "text." and "lm_head"; transformers' modeling_llama.py.
Result<std::unique_ptr<Decoder>> load_llama_decoder(const TextSpec& spec, WeightStore& store);

}  // namespace triptych
