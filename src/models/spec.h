#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "ops/linear.h"

namespace triptych {

/// Rotary position embedding as data. `inv_freq` already holds linear, llama3 or yarn scaling;
/// `attention_factor` multiplies cos and sin (yarn).
struct RopeSpec {
  std::string type = "default";
  double theta = 10000;
  std::vector<float> inv_freq;  ///< [rotary_dim / 2]
  float attention_factor = 1;
};

/// A causal decoder of the Llama lineage.
struct TextSpec {
  std::string model_type;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t max_positions = 0;  ///< context length in tokens
  float rms_norm_eps = 1e-6f;
  Activation act = Activation::kSilu;
  bool qkv_bias = false;
  bool output_bias = false;  ///< of the attention's output projection
  bool mlp_bias = false;
  bool tied = false;             ///< what the config says; a stored lm_head wins
  std::vector<int64_t> windows;  ///< sliding window a layer, 0: full attention
  RopeSpec rope;
};

/// A ViT tower with learned absolute positions (CLIP, SigLIP).
struct VisionSpec {
  std::string model_type;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t channels = 3;
  int64_t image_size = 0;  ///< side in pixels that the positions were learned for
  int64_t patch_size = 0;
  Activation act = Activation::kNone;
  float layer_norm_eps = 1e-6f;
  bool class_token = false;
  bool patch_bias = false;
  bool pre_norm = false;  ///< a LayerNorm between embeddings and the first block
  /// Indices into hidden_states (0: embeddings, i: output of block i - 1) whose rows are the
  /// features, concatenated along channels. Non-negative, within n_layers.
  std::vector<int64_t> feature_layers;
  /// vision_feature_select_strategy "default": the first row (CLIP's class token) is left out. A
  /// tower without a class token then loses its first patch, as it does in transformers.
  bool drop_first_row = true;

  int64_t grid() const { return image_size / patch_size; }
  int64_t n_patches() const { return grid() * grid(); }
  int64_t n_positions() const { return n_patches() + (class_token ? 1 : 0); }
  /// Feature rows of a picture.
  int64_t n_features() const { return n_positions() - (drop_first_row ? 1 : 0); }
  int64_t feature_width() const {
    return hidden_size * static_cast<int64_t>(feature_layers.size());
  }
  int64_t n_blocks_run() const;
};

struct ProjectorSpec {
  enum class Kind : uint8_t {
    kMlp2,             ///< linear, activation, linear
    kLinearLayerNorm,  ///< linear, LayerNorm (dropout while training)
  };
  Kind kind = Kind::kMlp2;
  Activation act = Activation::kGeluErf;
  bool bias = true;
  float layer_norm_eps = 1e-5f;
};

/// Defaults of generation_config.json; unset where the checkpoint says nothing.
struct GenerationDefaults {
  std::vector<int32_t> eos_ids;
  bool do_sample = false;
  std::optional<double> temperature;
  std::optional<int64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
};

/// All that the rest of the system knows about a model.
struct ModelSpec {
  std::string model_type;
  std::string architecture;
  TextSpec text;
  std::optional<VisionSpec> vision;
  std::optional<ProjectorSpec> projector;
  std::optional<int32_t> image_token_id;
  GenerationDefaults generation;

  /// Tokens that a picture of this pixel size takes in a sequence; the same number that sizes the
  /// features. kInvalidArgument when the tower cannot take the size.
  Result<int64_t> image_tokens(int64_t pixel_width, int64_t pixel_height) const;
  /// KV cache bytes of one token over all layers.
  int64_t kv_bytes_per_token(DType kv_dtype) const;
};

/// The activation of a Hugging Face `hidden_act` string; `source` names file and key in errors.
Result<Activation> parse_activation(const std::string& name, const std::string& source);

}  // namespace triptych
