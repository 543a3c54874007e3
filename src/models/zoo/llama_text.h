#pragma once

#include "models/registry.h"

namespace triptych {

/// The config fields that all decoders of the Llama lineage share; biases and windows are the
/// family's to set. transformers: LlamaConfig, MistralConfig, Qwen2Config.
Result<TextSpec> parse_llama_text(const ConfigReader& config, const ConfigSection& text);

/// A window a layer as use_sliding_window, sliding_window, max_window_layers and layer_types say
/// it; 0 for full attention. An explicit layer_types wins over max_window_layers. transformers:
/// Qwen2Config, Qwen3Config.
Result<std::vector<int64_t>> parse_layer_windows(const ConfigSection& text, int64_t n_layers);

/// Builds the decoder part of a model of that lineage.
Status build_llama_text(const ModelSpec& spec, WeightStore& store, Model& model);

}  // namespace triptych
