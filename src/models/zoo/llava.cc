// LLaVA-1.5 and what is built like it: CLIP or SigLIP tower, projector, a decoder of any family.
// transformers: LlavaConfig, LlavaForConditionalGeneration.
#include <fmt/format.h>

#include "models/projectors/layer_norm_projector.h"
#include "models/projectors/mlp_projector.h"
#include "models/registry.h"
#include "models/towers/vision/vit.h"

namespace triptych {
namespace {

Result<VisionSpec> parse_tower(const ConfigReader& config) {
  TRIPTYCH_ASSIGN_OR_RETURN(const ConfigSection vision, config.vision());
  VisionSpec spec;
  spec.model_type = vision.model_type();
  const bool clip = spec.model_type == "clip_vision_model";
  if (!clip && spec.model_type != "siglip_vision_model") {
    return unsupported(
        fmt::format("{}.model_type: vision tower \"{}\" is not supported; known: "
                    "clip_vision_model, siglip_vision_model",
                    vision.ref().path(), spec.model_type));
  }
  spec.class_token = clip;
  spec.pre_norm = clip;
  spec.patch_bias = !clip;
  TRIPTYCH_ASSIGN_OR_RETURN(spec.hidden_size, vision.get_int("hidden_size", 1, 1 << 20));
  TRIPTYCH_ASSIGN_OR_RETURN(spec.intermediate_size,
                            vision.get_int("intermediate_size", 1, 1 << 20));
  TRIPTYCH_ASSIGN_OR_RETURN(spec.n_layers, vision.get_int("num_hidden_layers", 1, 4096));
  TRIPTYCH_ASSIGN_OR_RETURN(spec.n_heads, vision.get_int("num_attention_heads", 1, 65536));
  if (spec.hidden_size % spec.n_heads != 0) {
    return vision.error("num_attention_heads",
                        fmt::format("hidden_size {} is not a multiple of {} heads",
                                    spec.hidden_size, spec.n_heads));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(spec.channels, vision.get_int("num_channels", 3, 3));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto image, vision.get_size("image_size", 1, 1 << 16));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto patch, vision.get_size("patch_size", 1, 1 << 12));
  if (image[0] != image[1] || patch[0] != patch[1] || patch[0] > image[0]) {
    return vision.error("image_size", "need a square picture of at least one square patch");
  }
  spec.image_size = image[0];
  spec.patch_size = patch[0];
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string act, vision.get_string("hidden_act"));
  TRIPTYCH_ASSIGN_OR_RETURN(spec.act, parse_activation(act, vision.ref().path() + ".hidden_act"));
  TRIPTYCH_ASSIGN_OR_RETURN(const double eps, vision.get_number("layer_norm_eps", 0, 1));
  spec.layer_norm_eps = static_cast<float>(eps);
  return spec;
}

/// vision_feature_layer counts hidden_states from either end: 0 is the embeddings, -1 the output of
/// the last block.
Status parse_features(const ConfigReader& config, VisionSpec& vision) {
  const ConfigSection& root = config.root();
  TRIPTYCH_ASSIGN_OR_RETURN(
      vision.feature_layers,
      root.find_ints("vision_feature_layer", -vision.n_layers - 1, vision.n_layers));
  if (vision.feature_layers.empty()) {
    return root.error("vision_feature_layer", "names no layer");
  }
  for (int64_t& layer : vision.feature_layers) {
    if (layer < 0) layer += vision.n_layers + 1;
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string strategy,
                            root.get_string("vision_feature_select_strategy"));
  if (strategy != "default" && strategy != "full") {
    return root.error("vision_feature_select_strategy",
                      fmt::format("\"{}\" is unknown: use default or full", strategy));
  }
  vision.drop_first_row = strategy == "default";
  return Status::ok();
}

Status parse_media(const ConfigReader& config, ModelSpec& spec) {
  TRIPTYCH_ASSIGN_OR_RETURN(VisionSpec vision, parse_tower(config));
  TRIPTYCH_RETURN_IF_ERROR(parse_features(config, vision));
  spec.vision = std::move(vision);
  const ConfigSection& root = config.root();
  ProjectorSpec projector;
  TRIPTYCH_ASSIGN_OR_RETURN(const auto kind, root.find_string("projector_type"));
  if (kind && *kind == "linear_layernorm") {
    projector.kind = ProjectorSpec::Kind::kLinearLayerNorm;
    TRIPTYCH_ASSIGN_OR_RETURN(const auto eps, root.find_number("projector_layer_norm_eps", 0, 1));
    projector.layer_norm_eps = static_cast<float>(eps.value_or(1e-5));
  } else if (kind && *kind != "mlp") {
    return root.error("projector_type",
                      fmt::format("\"{}\" is unknown: use mlp or linear_layernorm", *kind));
  } else {
    TRIPTYCH_ASSIGN_OR_RETURN(const std::string act, root.get_string("projector_hidden_act"));
    TRIPTYCH_ASSIGN_OR_RETURN(projector.act,
                              parse_activation(act, root.ref().path() + ": projector_hidden_act"));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(projector.bias, root.get_bool("multimodal_projector_bias"));
  spec.projector = projector;
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t image_id, config.image_token_id());
  spec.image_token_id = static_cast<int32_t>(image_id);
  return Status::ok();
}

Status build(const ModelSpec& spec, WeightStore& store, Model& model) {
  const VisionSpec& vision = *spec.vision;
  WeightLoader& loader = store.loader();
  for (int64_t i = vision.n_blocks_run(); i < vision.n_layers; ++i) {
    loader.ignore(fmt::format("vision.encoder.layers.{}.*", i), "behind the feature layer");
  }
  loader.ignore("vision.post_layernorm.*", "features are taken before it");
  loader.ignore("vision.head.*", "pooling is not used");
  store.begin_part("vision_tower");
  TRIPTYCH_ASSIGN_OR_RETURN(model.vision_tower, load_vit(vision, store));
  store.begin_part("projector");
  if (spec.projector->kind == ProjectorSpec::Kind::kLinearLayerNorm) {
    TRIPTYCH_ASSIGN_OR_RETURN(model.projector,
                              load_layer_norm_projector(*spec.projector, vision.feature_width(),
                                                        spec.text.hidden_size, store));
  } else {
    TRIPTYCH_ASSIGN_OR_RETURN(
        model.projector,
        load_mlp_projector(*spec.projector, vision.feature_width(), spec.text.hidden_size, store));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const ModelEntry* text,
                            find_model(spec.text.model_type, "text_config"));
  return text->build(spec, store, model);
}

}  // namespace

extern const ModelEntry kLlava;
const ModelEntry kLlava = {"llava", nullptr, parse_media, build};

}  // namespace triptych
