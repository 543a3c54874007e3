#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "weights/checkpoint.h"

namespace triptych {

/// Opens a GGUF file of architecture `llama` as a checkpoint in Hugging Face's terms: config,
/// canonical tensor names, axes and row order. See Checkpoint::open for errors.
Result<std::unique_ptr<Checkpoint>> open_gguf(const std::string& path,
                                              const CheckpointOptions& options);

}  // namespace triptych
