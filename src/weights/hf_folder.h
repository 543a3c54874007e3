#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "weights/checkpoint.h"

namespace triptych {

/// Opens a Hugging Face folder: config.json, optionally generation_config.json, and weights as
/// model.safetensors or as the shards of model.safetensors.index.json (the single file wins, as in
/// transformers). The index is trusted for which shard holds which tensor; stale shards and
/// tensors that it does not list are left aside with a note. See Checkpoint::open for errors.
Result<std::unique_ptr<Checkpoint>> open_hf_folder(const std::string& folder);

}  // namespace triptych
