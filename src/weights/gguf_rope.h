#pragma once

#include "base/json.h"
#include "base/status.h"
#include "weights/gguf.h"

namespace triptych {

/// Sets rope_theta and, where the file scales its rope, rope_scaling of a LlamaConfig from the
/// llama.rope.* metadata and the rope_freqs.weight tensor. That tensor holds Llama 3's frequency
/// factors ready-made; the parameters they come from are recovered and checked against it, so
/// that the config says what the file does. `config` has head_dim. kUnsupported names scaling that
/// LlamaConfig cannot say.
Status set_gguf_rope(const GgufFile& file, Json& config);

}  // namespace triptych
