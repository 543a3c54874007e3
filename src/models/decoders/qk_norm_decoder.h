#pragma once

#include <memory>

#include "models/model.h"

namespace triptych {

/// The Llama block with an RMSNorm over each query and key head before RoPE
/// (`self_attn.q_norm` and `k_norm`, [head_dim]). Serves qwen3.
/// Tensors under "text." and "lm_head"; transformers' modeling_qwen3.py.
Result<std::unique_ptr<Decoder>> load_qk_norm_decoder(const TextSpec& spec, WeightStore& store);

}  // namespace triptych
