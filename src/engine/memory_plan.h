#pragma once

#include <cstdint>
#include <string>

#include "cache/kv/page_pool.h"
#include "models/model.h"

namespace triptych {

/// All memory an engine may take, worked out before it is taken and printed by `inspect`.
struct MemoryPlan {
  uint64_t weight_bytes = 0;
  KvGeometry kv;
  int64_t kv_pages = 0;
  int64_t context_tokens = 0;  ///< longest sequence
  uint64_t kv_bytes = 0;
  int64_t max_sequences = 0;     ///< that may be in one step
  int64_t chunk_rows = 0;        ///< rows of a prompt that one step takes at most
  int64_t step_rows = 0;         ///< a chunk and a row of every other sequence
  uint64_t workspace_bytes = 0;  ///< step scratch of decoder, tower and projector; logits
  uint64_t encode_bytes = 0;     ///< one picture's state between slices, features and embeddings

  uint64_t total() const { return weight_bytes + kv_bytes + workspace_bytes + encode_bytes; }
};

struct PlanLimits {
  int64_t context_tokens = 0;  ///< 0: the model's context, as far as `kv_cap_bytes` holds it
  int64_t max_sequences = 1;
  uint64_t kv_cap_bytes = uint64_t{4} << 30;
  int64_t chunk_rows = 512;
};

/// The KV cache holds `max_sequences` whole contexts, or what the cap leaves of them.
/// kInvalidArgument when the wanted context is beyond the model's, kResourceExhausted when the KV
/// cap does not hold a single page.
Result<MemoryPlan> plan_memory(const Model& model, DType kv_dtype, const PlanLimits& limits,
                               int n_threads);

}  // namespace triptych
