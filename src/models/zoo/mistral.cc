#include "models/zoo/llama_text.h"

namespace triptych {
namespace {

Result<TextSpec> parse(const ConfigReader& config, const ConfigSection& text) {
  TRIPTYCH_ASSIGN_OR_RETURN(TextSpec spec, parse_llama_text(config, text));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto window, text.find_int("sliding_window", 1, INT32_MAX));
  spec.windows.assign(static_cast<size_t>(spec.n_layers), window.value_or(0));
  return spec;
}

}  // namespace

extern const ModelEntry kMistral;
const ModelEntry kMistral = {"mistral", parse, nullptr, build_llama_text};

}  // namespace triptych
