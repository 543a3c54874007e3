#include "models/zoo/llama_text.h"

namespace triptych {
namespace {

Result<TextSpec> parse(const ConfigReader& config, const ConfigSection& text) {
  TRIPTYCH_ASSIGN_OR_RETURN(TextSpec spec, parse_llama_text(config, text));
  spec.qkv_bias = true;
  TRIPTYCH_ASSIGN_OR_RETURN(spec.windows, parse_layer_windows(text, spec.n_layers));
  return spec;
}

}  // namespace

extern const ModelEntry kQwen2;
const ModelEntry kQwen2 = {"qwen2", parse, nullptr, build_llama_text};

}  // namespace triptych
