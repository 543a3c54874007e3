#include "models/zoo/llama_text.h"

namespace triptych {
namespace {

Result<TextSpec> parse(const ConfigReader& config, const ConfigSection& text) {
  TRIPTYCH_ASSIGN_OR_RETURN(TextSpec spec, parse_llama_text(config, text));
  TRIPTYCH_ASSIGN_OR_RETURN(spec.qkv_bias, text.get_bool("attention_bias"));
  spec.output_bias = spec.qkv_bias;
  TRIPTYCH_ASSIGN_OR_RETURN(spec.mlp_bias, text.get_bool("mlp_bias"));
  return spec;
}

}  // namespace

extern const ModelEntry kLlama;
const ModelEntry kLlama = {"llama", parse, nullptr, build_llama_text};

}  // namespace triptych
