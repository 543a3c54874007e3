#pragma once

#include "models/registry.h"

namespace triptych {

/// The config fields that all decoders of the Llama lineage share; biases and windows are the
/// family's to set. transformers: LlamaConfig, MistralConfig, Qwen2Config.
Result<TextSpec> parse_llama_text(const ConfigReader& config, const ConfigSection& text);

/// Builds the decoder part of a model of that lineage.
Status build_llama_text(const ModelSpec& spec, WeightStore& store, Model& model);

}  // namespace triptych
