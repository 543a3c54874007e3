#pragma once

#include <cstdint>
#include <string>

#include "cache/kv/page_pool.h"
#include "models/model.h"

namespace triptych {

/// What media take as they come, each bounded by itself.
struct MediaCaps {
  uint64_t encoder_cache_bytes = uint64_t{256} << 20;  ///< features that outlive their request
  uint64_t pixel_cache_bytes = uint64_t{64} << 20;     ///< prepared pixels that do
  uint64_t in_work_bytes = uint64_t{1} << 30;  ///< pixels and encoder state in the engine at once
  uint64_t request_bytes = uint64_t{2} << 30;  ///< of requests, from submit to their end

  uint64_t total() const {
    return encoder_cache_bytes + pixel_cache_bytes + in_work_bytes + request_bytes;
  }
  /// The same, none above its share of `bytes`: half of them together, the rest is the KV cache's.
  /// What is in work keeps at least `one_item`.
  MediaCaps within(uint64_t bytes, uint64_t one_item) const;
};

/// All memory an engine and the preparation in front of it may take, worked out before it is taken
/// and printed by `inspect`.
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

  MediaCaps media;  ///< taken as needed

  /// Taken at the start.
  uint64_t total() const { return weight_bytes + kv_bytes + workspace_bytes + encode_bytes; }
  uint64_t at_most() const { return total() + media.total(); }
};

struct PlanLimits {
  int64_t context_tokens = 0;  ///< 0: the model's context, as far as `kv_cap_bytes` holds it
  int64_t max_sequences = 1;
  uint64_t kv_cap_bytes = uint64_t{4} << 30;
  int64_t chunk_rows = 512;
  MediaCaps media;
  uint64_t memory_cap_bytes = 0;  ///< of all of the plan; 0: only the caps of its parts hold
};

/// The KV cache holds `max_sequences` whole contexts, or what the caps leave of them.
/// kInvalidArgument when the wanted context is beyond the model's, kResourceExhausted when the
/// memory cap does not hold the weights and what a step works in, or when what is left for the KV
/// cache does not hold the wanted context or a single page.
Result<MemoryPlan> plan_memory(const Model& model, DType kv_dtype, const PlanLimits& limits,
                               int n_threads);

}  // namespace triptych
