#include "weights/config_defaults.h"

#include <algorithm>
#include <array>

namespace triptych {
namespace {

struct DefaultsRow {
  std::string_view model_type;
  std::string_view json;
};

// Values of transformers 5.24.0; the class stands above each. Names that inference does not read
// (dropout, initialisers) are left out.
constexpr std::array kRows = {
    // LlavaConfig. Sub-configs: sub_configs_defaults, which apply when a part is absent as a whole;
    // a part without model_type is of the type given here.
    DefaultsRow{"llava", R"({
      "image_token_index": 32000, "image_seq_length": 576, "projector_hidden_act": "gelu",
      "vision_feature_select_strategy": "default", "vision_feature_layer": -2,
      "multimodal_projector_bias": true, "tie_word_embeddings": false,
      "text_config": {"model_type": "llama"},
      "vision_config": {"model_type": "clip_vision_model", "intermediate_size": 4096,
        "hidden_size": 1024, "patch_size": 14, "image_size": 336, "num_hidden_layers": 24,
        "num_attention_heads": 16, "projection_dim": 768}})"},
    // LlamaConfig. num_key_value_heads and head_dim follow from the heads.
    DefaultsRow{"llama", R"({
      "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
      "num_hidden_layers": 32, "num_attention_heads": 32, "hidden_act": "silu",
      "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "bos_token_id": 1,
      "eos_token_id": 2, "tie_word_embeddings": false, "attention_bias": false,
      "mlp_bias": false})"},
    // MistralConfig.
    DefaultsRow{"mistral", R"({
      "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
      "hidden_act": "silu", "max_position_embeddings": 131072, "rms_norm_eps": 1e-6,
      "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": false,
      "sliding_window": 4096})"},
    // Qwen2Config. sliding_window counts only with use_sliding_window.
    DefaultsRow{"qwen2", R"({
      "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
      "hidden_act": "silu", "max_position_embeddings": 32768, "rms_norm_eps": 1e-6,
      "tie_word_embeddings": false, "use_sliding_window": false, "sliding_window": 4096,
      "max_window_layers": 28})"},
    // Qwen3Config. head_dim does not follow from the heads.
    DefaultsRow{"qwen3", R"({
      "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
      "head_dim": 128, "hidden_act": "silu", "max_position_embeddings": 32768,
      "rms_norm_eps": 1e-6, "tie_word_embeddings": false, "attention_bias": false,
      "use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28})"},
    // CLIPVisionConfig.
    DefaultsRow{"clip_vision_model", R"({
      "hidden_size": 768, "intermediate_size": 3072, "projection_dim": 512,
      "num_hidden_layers": 12, "num_attention_heads": 12, "num_channels": 3, "image_size": 224,
      "patch_size": 32, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5})"},
    // SiglipVisionConfig.
    DefaultsRow{"siglip_vision_model", R"({
      "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
      "num_attention_heads": 12, "num_channels": 3, "image_size": 224, "patch_size": 16,
      "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6, "vision_use_head": true})"},
};

std::array<Json, kRows.size()> parse_rows() {
  std::array<Json, kRows.size()> out;
  for (size_t i = 0; i < kRows.size(); ++i) {
    Result<Json> json = parse_json(kRows[i].json);
    if (json.is_ok()) out[i] = std::move(json).value();  // the test reads every row
  }
  return out;
}

}  // namespace

const Json* config_defaults(std::string_view model_type) {
  static const std::array<Json, kRows.size()> parsed = parse_rows();
  const auto* row = std::find_if(kRows.begin(), kRows.end(),
                                 [&](const DefaultsRow& r) { return r.model_type == model_type; });
  return row == kRows.end() ? nullptr : &parsed[static_cast<size_t>(row - kRows.begin())];
}

}  // namespace triptych
