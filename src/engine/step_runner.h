#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/kv/page_pool.h"
#include "models/model.h"
#include "request/request.h"

namespace triptych {

/// A media item on its way through tower and projector, kept between slices.
struct EncodeJob {
  std::shared_ptr<const PreparedMedia> media;
  EncodeState state;
  bool started = false;
  Tensor embeddings;  ///< [n_tokens, hidden_size] f32, filled by the last slice
  bool done = false;
};

/// Embeddings that take the place of token ids at [position, position + rows) of a sequence.
struct MediaRows {
  int64_t position = 0;
  View embeddings;  ///< [rows, hidden_size] f32
};

/// The next rows of one sequence in a step: positions [first, first + ids.size()).
struct SequenceStep {
  std::span<const int32_t> ids;
  int64_t first = 0;
  std::span<const int32_t> pages;       ///< page table, with room for all of these rows
  const int32_t* page_begin = nullptr;  ///< SequenceRows::page_begin
  std::span<const MediaRows> media;
  bool wants_logits = false;  ///< of the last row
};

/// What the step loop must know of the machine and model below it.
struct RunnerLimits {
  int64_t context_tokens = 0;  ///< longest sequence
  int64_t step_rows = 0;       ///< rows of a step at most
  int64_t chunk_rows = 0;      ///< rows of one sequence in a step at most
  int64_t max_sequences = 0;   ///< sequences of a step at most
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t n_encode_blocks = 0;  ///< of a media item's tower; 0: text only
  double encode_block_flops = 0;
  uint64_t encode_bytes = 0;  ///< state and features of one item in work
  OpCost row_cost;            ///< of one decoder row without attention; bytes: all weights
  OpCost pair_cost;           ///< of one row looking at one cached token
  std::vector<int32_t> eos_ids;
};

/// Runs the numbers of a step: no policy, no sequence state. One thread. The engine's tests put a
/// fake in its place.
class StepRunner {
 public:
  virtual ~StepRunner() = default;
  virtual const RunnerLimits& limits() const = 0;
  virtual PagePool& pages() = 0;
  /// Up to `n_blocks` further blocks of a media item; projects it behind the last one.
  virtual Status encode(EncodeJob& job, int64_t n_blocks) = 0;
  /// One packed batch of rows of different sequences. Keys and values go to the pages; the result
  /// is [sequences that want logits, vocab_size] f32, in their order, until the next call.
  virtual Result<View> forward(std::span<const SequenceStep> batch) = 0;
};

}  // namespace triptych
