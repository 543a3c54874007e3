#include "models/zoo/llama_text.h"

#include <fmt/format.h>

#include "models/decoders/llama_decoder.h"
#include "models/layers/rope_table.h"

namespace triptych {
namespace {

// Beyond these a config is broken or hostile: sizes are multiplied with each other later.
constexpr int64_t kMaxWidth = 1 << 20;
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxVocabulary = 1 << 24;
constexpr int64_t kMaxContext = 1 << 26;

}  // namespace

Result<TextSpec> parse_llama_text(const ConfigReader& config, const ConfigSection& text) {
  TextSpec spec;
  spec.model_type = text.model_type();
  TRIPTYCH_ASSIGN_OR_RETURN(spec.vocab_size, text.get_int("vocab_size", 1, kMaxVocabulary));
  TRIPTYCH_ASSIGN_OR_RETURN(spec.hidden_size, text.get_int("hidden_size", 1, kMaxWidth));
  TRIPTYCH_ASSIGN_OR_RETURN(spec.intermediate_size,
                            text.get_int("intermediate_size", 1, kMaxWidth));
  TRIPTYCH_ASSIGN_OR_RETURN(spec.n_layers, text.get_int("num_hidden_layers", 1, kMaxLayers));
  TRIPTYCH_ASSIGN_OR_RETURN(spec.n_heads, text.get_int("num_attention_heads", 1, 65536));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto kv_heads, text.find_int("num_key_value_heads", 1, 65536));
  spec.n_kv_heads = kv_heads.value_or(spec.n_heads);
  if (spec.n_heads % spec.n_kv_heads != 0) {
    return text.error("num_key_value_heads", fmt::format("{} query heads cannot share {} KV heads",
                                                         spec.n_heads, spec.n_kv_heads));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const auto head_dim, text.find_int("head_dim", 1, 65536));
  if (!head_dim && spec.hidden_size % spec.n_heads != 0) {
    return text.error("num_attention_heads",
                      fmt::format("hidden_size {} is not a multiple of {} heads and there is no "
                                  "head_dim",
                                  spec.hidden_size, spec.n_heads));
  }
  spec.head_dim = head_dim.value_or(spec.hidden_size / spec.n_heads);
  TRIPTYCH_ASSIGN_OR_RETURN(spec.max_positions,
                            text.get_int("max_position_embeddings", 1, kMaxContext));
  TRIPTYCH_ASSIGN_OR_RETURN(const double eps, text.get_number("rms_norm_eps", 0, 1));
  spec.rms_norm_eps = static_cast<float>(eps);
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string act, text.get_string("hidden_act"));
  TRIPTYCH_ASSIGN_OR_RETURN(spec.act, parse_activation(act, text.ref().path() + ".hidden_act"));
  TRIPTYCH_ASSIGN_OR_RETURN(spec.tied, config.tied_embeddings());
  TRIPTYCH_ASSIGN_OR_RETURN(const RopeConfig rope, read_rope(text));
  TRIPTYCH_ASSIGN_OR_RETURN(spec.rope, make_rope_spec(rope, spec.head_dim, text.ref().path()));
  spec.windows.assign(static_cast<size_t>(spec.n_layers), 0);
  return spec;
}

Result<std::vector<int64_t>> parse_layer_windows(const ConfigSection& text, int64_t n_layers) {
  TRIPTYCH_ASSIGN_OR_RETURN(const bool switched_on, text.get_bool("use_sliding_window"));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto width, text.find_int("sliding_window", 1, INT32_MAX));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto first, text.find_int("max_window_layers", 0, INT32_MAX));
  const int64_t window = switched_on ? width.value_or(0) : 0;
  std::vector<int64_t> windows(static_cast<size_t>(n_layers), 0);
  const JsonRef types = text.lookup("layer_types");
  if (types.is_null()) {
    for (int64_t i = first.value_or(0); i < n_layers; ++i) windows[static_cast<size_t>(i)] = window;
    return windows;
  }
  if (!types.json().is_array() || static_cast<int64_t>(types.size()) != n_layers) {
    return types.error(fmt::format("expected a list of {} names, one a layer", n_layers));
  }
  for (size_t i = 0; i < windows.size(); ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(const std::string type, types.at(i).as_string());
    if (type == "full_attention") continue;
    if (type != "sliding_attention") {
      return types.at(i).error(fmt::format(
          "\"{}\" is unknown: use full_attention or sliding_attention", type.substr(0, 100)));
    }
    if (window == 0) {
      return types.at(i).error("slides, but use_sliding_window is false or sliding_window null");
    }
    windows[i] = window;
  }
  return windows;
}

Status build_llama_text(const ModelSpec& spec, WeightStore& store, Model& model) {
  TRIPTYCH_ASSIGN_OR_RETURN(model.decoder, load_llama_decoder(spec.text, store));
  return Status::ok();
}

}  // namespace triptych
