#include "sched/chunking.h"

#include <algorithm>

namespace triptych {

int64_t legal_chunk(const SequenceState& sequence, int64_t most, int64_t chunk_rows) {
  const int64_t begin = sequence.n_cached;
  const int64_t end = begin + std::min(most, sequence.pending_rows());
  for (const MediaState& media : sequence.media) {
    if (media.position >= end) break;
    if (media.end() <= end || media.length > chunk_rows) continue;
    return std::max<int64_t>(media.position - begin, 0);
  }
  return end - begin;
}

int64_t smallest_chunk(const SequenceState& sequence, int64_t chunk_rows) {
  for (const MediaState& media : sequence.media) {
    if (media.position > sequence.n_cached) break;
    if (media.end() > sequence.n_cached && media.length <= chunk_rows) {
      return media.end() - sequence.n_cached;
    }
  }
  return 1;
}

}  // namespace triptych
