#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "core/dtype.h"

namespace triptych {

/// One part of a config.json (root, text or vision), read as transformers reads it: the part's own
/// member, else (text only) the root's, else the default of the part's configuration class
/// (config_defaults.cc). An explicit null is a value: `sliding_window: null` switches off what a
/// missing sliding_window would switch on. All errors are kInvalidArgument with file and key path.
/// Borrows the config.
class ConfigSection {
 public:
  const std::string& model_type() const { return model_type_; }
  /// For reading members that have no helper here.
  JsonRef ref() const { return own_; }
  /// An error about `key` of this part.
  Status error(std::string_view key, std::string_view what) const;

  /// True when this part, or the root behind it, spells `key` with a value other than null.
  bool has(std::string_view key) const;

  /// The member that answers for `key`; a reference to null when nothing does.
  JsonRef lookup(std::string_view key) const;
  /// Required values: null and a key without any default are errors.
  Result<int64_t> get_int(std::string_view key, int64_t low, int64_t high) const;
  Result<double> get_number(std::string_view key, double low, double high) const;
  Result<bool> get_bool(std::string_view key) const;
  Result<std::string> get_string(std::string_view key) const;
  /// Optional values: nothing for null and for a key without default.
  Result<std::optional<int64_t>> find_int(std::string_view key, int64_t low, int64_t high) const;
  Result<std::optional<double>> find_number(std::string_view key, double low, double high) const;
  Result<std::optional<std::string>> find_string(std::string_view key) const;
  /// An integer or a list of them (eos_token_id, vision_feature_layer); empty for null or absent.
  Result<std::vector<int64_t>> find_ints(std::string_view key, int64_t low, int64_t high) const;
  /// An integer n -> {n, n}, or a list {height, width} (image_size, patch_size).
  Result<std::array<int64_t, 2>> get_size(std::string_view key, int64_t low, int64_t high) const;

 private:
  friend class ConfigReader;
  ConfigSection(JsonRef own, std::optional<JsonRef> outer, std::string model_type)
      : own_(std::move(own)), outer_(std::move(outer)), model_type_(std::move(model_type)) {}
  Result<JsonRef> required(std::string_view key) const;

  JsonRef own_;
  std::optional<JsonRef> outer_;
  std::string model_type_;
};

/// A whole config.json.
class ConfigReader {
 public:
  /// kInvalidArgument when the config is no object or has no model_type. `config` must outlive it.
  static Result<ConfigReader> create(const Json& config, std::string source);

  const ConfigSection& root() const { return root_; }
  /// architectures[0], or empty.
  const std::string& architecture() const { return architecture_; }
  /// `text_config` with the root behind it; the root itself for a text-only model.
  Result<ConfigSection> text() const;
  /// `vision_config`. Absent as a whole it is what the model class then uses (for llava CLIP
  /// ViT-L/14-336).
  Result<ConfigSection> vision() const;

  /// tie_word_embeddings of the root or of the text part: transformers ties when either says so.
  Result<bool> tied_embeddings() const;
  /// image_token_id or image_token_index, or the class default; both with different values are an
  /// error.
  Result<int64_t> image_token_id() const;
  /// `dtype` or `torch_dtype` of root or text part; nothing when absent. Stored tensors decide.
  Result<std::optional<DType>> dtype() const;

 private:
  ConfigReader(ConfigSection root, std::string architecture)
      : root_(std::move(root)), architecture_(std::move(architecture)) {}
  Result<ConfigSection> part(std::string_view key, bool root_behind) const;

  ConfigSection root_;
  std::string architecture_;
};

enum class RopeType : uint8_t { kDefault, kLinear, kDynamic, kLlama3, kYarn };

/// Rotary embedding parameters, whichever of the three spellings the config uses:
/// rope_theta + rope_scaling (key `type` or `rope_type`), or rope_parameters (transformers v5).
/// Meaning of the fields: transformers, modeling_rope_utils.RopeParameters.
struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 10000.0;
  double partial_rotary_factor = 1.0;
  double factor = 1.0;
  /// Context length of pretraining; max_position_embeddings where the config does not say.
  int64_t original_max_position_embeddings = 0;
  double low_freq_factor = 1.0;                  ///< llama3
  double high_freq_factor = 4.0;                 ///< llama3
  std::optional<double> attention_factor;        ///< yarn
  std::optional<double> mscale, mscale_all_dim;  ///< yarn
  double beta_fast = 32.0;                       ///< yarn
  double beta_slow = 1.0;                        ///< yarn
  bool truncate = true;                          ///< yarn
};

/// kUnsupported names a rope type that we do not compute (longrope, ...), kInvalidArgument a
/// missing or bad value.
Result<RopeConfig> read_rope(const ConfigSection& text);

}  // namespace triptych
