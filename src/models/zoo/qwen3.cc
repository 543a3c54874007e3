#include "models/decoders/qk_norm_decoder.h"
#include "models/zoo/llama_text.h"

namespace triptych {
namespace {

Result<TextSpec> parse(const ConfigReader& config, const ConfigSection& text) {
  TRIPTYCH_ASSIGN_OR_RETURN(TextSpec spec, parse_llama_text(config, text));
  TRIPTYCH_ASSIGN_OR_RETURN(spec.qkv_bias, text.get_bool("attention_bias"));
  spec.output_bias = spec.qkv_bias;
  TRIPTYCH_ASSIGN_OR_RETURN(spec.windows, parse_layer_windows(text, spec.n_layers));
  return spec;
}

Status build(const ModelSpec& spec, WeightStore& store, Model& model) {
  TRIPTYCH_ASSIGN_OR_RETURN(model.decoder, load_qk_norm_decoder(spec.text, store));
  return Status::ok();
}

}  // namespace

extern const ModelEntry kQwen3;
const ModelEntry kQwen3 = {"qwen3", parse, nullptr, build};

}  // namespace triptych
