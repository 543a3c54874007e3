#include "models/registry.h"

#include <fmt/format.h>

#include <algorithm>

namespace triptych {

extern const ModelEntry kLlama;
extern const ModelEntry kLlava;
extern const ModelEntry kMistral;
extern const ModelEntry kQwen2;
extern const ModelEntry kQwen3;

namespace {

void add_eos(std::vector<int32_t>& ids, const std::vector<int64_t>& more) {
  for (int64_t id : more) {
    const auto narrow = static_cast<int32_t>(id);
    if (std::find(ids.begin(), ids.end(), narrow) == ids.end()) ids.push_back(narrow);
  }
}

/// The stop set is the union of what config and generation config name, restricted to the
/// vocabulary: broken files name ids beyond it.
Result<GenerationDefaults> read_generation(const Checkpoint& checkpoint, const ConfigReader& config,
                                           const ConfigSection& text, int64_t vocab_size) {
  GenerationDefaults out;
  TRIPTYCH_ASSIGN_OR_RETURN(const auto root_ids,
                            config.root().find_ints("eos_token_id", 0, INT32_MAX));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto text_ids, text.find_ints("eos_token_id", 0, INT32_MAX));
  add_eos(out.eos_ids, root_ids);
  if (const Json* json = checkpoint.generation_config(); json != nullptr) {
    const JsonRef ref(*json, checkpoint.generation_config_source());
    if (ref.has("eos_token_id")) {
      const JsonRef ids = ref.at("eos_token_id");
      if (ids.json().is_array()) {
        TRIPTYCH_ASSIGN_OR_RETURN(const auto list, ids.as_ints());
        add_eos(out.eos_ids, list);
      } else {
        TRIPTYCH_ASSIGN_OR_RETURN(const int64_t id, ids.as_int());
        add_eos(out.eos_ids, {id});
      }
    }
    TRIPTYCH_ASSIGN_OR_RETURN(out.do_sample, ref.get_bool("do_sample", false));
    const auto number = [&](const char* key, std::optional<double>& field) -> Status {
      if (!ref.has(key)) return Status::ok();
      TRIPTYCH_ASSIGN_OR_RETURN(field, ref.at(key).as_number());
      return Status::ok();
    };
    TRIPTYCH_RETURN_IF_ERROR(number("temperature", out.temperature));
    TRIPTYCH_RETURN_IF_ERROR(number("top_p", out.top_p));
    TRIPTYCH_RETURN_IF_ERROR(number("min_p", out.min_p));
    TRIPTYCH_RETURN_IF_ERROR(number("repetition_penalty", out.repetition_penalty));
    if (ref.has("top_k")) {
      TRIPTYCH_ASSIGN_OR_RETURN(out.top_k, ref.at("top_k").as_int());
    }
  }
  if (out.eos_ids.empty()) add_eos(out.eos_ids, text_ids);
  std::erase_if(out.eos_ids, [&](int32_t id) { return id < 0 || id >= vocab_size; });
  return out;
}

}  // namespace

std::span<const ModelEntry* const> model_registry() {
  static constexpr const ModelEntry* kEntries[] = {&kLlama, &kLlava, &kMistral, &kQwen2, &kQwen3};
  return kEntries;
}

Result<const ModelEntry*> find_model(const std::string& model_type, const std::string& source) {
  std::string known;
  for (const ModelEntry* entry : model_registry()) {
    if (entry->model_type == model_type) return entry;
    known += known.empty() ? "" : ", ";
    known += entry->model_type;
  }
  return unsupported(
      fmt::format("{}: model_type \"{}\" is not supported; known: {}", source, model_type, known));
}

Result<ModelSpec> parse_model_spec(const Checkpoint& checkpoint) {
  TRIPTYCH_ASSIGN_OR_RETURN(const ConfigReader config,
                            ConfigReader::create(checkpoint.config(), checkpoint.config_source()));
  TRIPTYCH_ASSIGN_OR_RETURN(const ModelEntry* entry,
                            find_model(config.root().model_type(), checkpoint.config_source()));
  TRIPTYCH_ASSIGN_OR_RETURN(const ConfigSection text, config.text());
  TRIPTYCH_ASSIGN_OR_RETURN(const ModelEntry* text_entry,
                            find_model(text.model_type(), checkpoint.config_source()));
  if (text_entry->parse_text == nullptr) {
    return text.error("model_type", fmt::format("{} is not a decoder", text.model_type()));
  }
  ModelSpec spec;
  spec.model_type = entry->model_type;
  spec.architecture = config.architecture();
  TRIPTYCH_ASSIGN_OR_RETURN(spec.text, text_entry->parse_text(config, text));
  if (entry->parse_media != nullptr) TRIPTYCH_RETURN_IF_ERROR(entry->parse_media(config, spec));
  TRIPTYCH_ASSIGN_OR_RETURN(spec.generation,
                            read_generation(checkpoint, config, text, spec.text.vocab_size));
  return spec;
}

Result<std::unique_ptr<Model>> load_model(const Checkpoint& checkpoint, const KernelTable& kernels,
                                          const Stream& stream, bool huge_pages) {
  auto model = std::make_unique<Model>();
  TRIPTYCH_ASSIGN_OR_RETURN(model->spec, parse_model_spec(checkpoint));
  TRIPTYCH_ASSIGN_OR_RETURN(const ModelEntry* entry,
                            find_model(model->spec.model_type, checkpoint.config_source()));
  WeightLoader loader(checkpoint);
  loader.ignore("*.position_ids", "a constant that old files store");
  loader.ignore("*.rotary_emb.inv_freq", "recomputed from the config");
  TRIPTYCH_ASSIGN_OR_RETURN(model->weights,
                            WeightStore::create(loader, kernels, stream, huge_pages));
  TRIPTYCH_RETURN_IF_ERROR(entry->build(model->spec, *model->weights, *model));
  TRIPTYCH_RETURN_IF_ERROR(loader.finish());
  for (const WeightLoader::Ignored& left : loader.report()) {
    model->ignored_tensors.push_back(left.tensor->original_name + " (" + left.reason + ")");
  }
  model->weights->seal();
  return model;
}

}  // namespace triptych
