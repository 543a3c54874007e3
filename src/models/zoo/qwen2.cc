#include "models/zoo/llama_text.h"

namespace triptych {
namespace {

Result<TextSpec> parse(const ConfigReader& config, const ConfigSection& text) {
  TRIPTYCH_ASSIGN_OR_RETURN(TextSpec spec, parse_llama_text(config, text));
  spec.qkv_bias = true;
  // Layers from max_window_layers on slide, and only when use_sliding_window says so.
  TRIPTYCH_ASSIGN_OR_RETURN(const bool slides, text.get_bool("use_sliding_window"));
  if (slides) {
    TRIPTYCH_ASSIGN_OR_RETURN(const auto window, text.find_int("sliding_window", 1, INT32_MAX));
    TRIPTYCH_ASSIGN_OR_RETURN(const auto first, text.find_int("max_window_layers", 0, INT32_MAX));
    for (int64_t i = first.value_or(0); i < spec.n_layers; ++i) {
      spec.windows[static_cast<size_t>(i)] = window.value_or(0);
    }
  }
  return spec;
}

}  // namespace

extern const ModelEntry kQwen2;
const ModelEntry kQwen2 = {"qwen2", parse, nullptr, build_llama_text};

}  // namespace triptych
