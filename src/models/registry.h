#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/settings.h"
#include "models/model.h"
#include "weights/checkpoint.h"
#include "weights/config_reader.h"

namespace triptych {

/// A model family: how its config is read and how its parts are built. One file a family in zoo/.
struct ModelEntry {
  const char* model_type;  ///< Hugging Face's string
  /// Fills spec.text (and vision, projector, tokens where the family has them). `text` reads a
  /// decoder's config: the root of a text-only model, or a part of a multimodal one.
  Result<TextSpec> (*parse_text)(const ConfigReader& config, const ConfigSection& text);
  Status (*parse_media)(const ConfigReader& config, ModelSpec& spec);  ///< null: text only
  /// Binds the weights. A decoder family fills model.decoder alone: multimodal families call it.
  Status (*build)(const ModelSpec& spec, WeightStore& store, Model& model);
};

/// All families, in the order of the registry.
std::span<const ModelEntry* const> model_registry();
/// The entry of a model_type; kUnsupported lists the known ones. `source` names the config.
Result<const ModelEntry*> find_model(const std::string& model_type, const std::string& source);

/// Reads config.json and generation_config.json into a spec. Touches no weights.
Result<ModelSpec> parse_model_spec(const Checkpoint& checkpoint);

/// Binds and packs all weights. Errors name file, tensor, what was expected and what was found;
/// a tensor that the model does not know is an error too.
Result<std::unique_ptr<Model>> load_model(const Checkpoint& checkpoint, const KernelTable& kernels,
                                          const Stream& stream, bool huge_pages);

}  // namespace triptych
