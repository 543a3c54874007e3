#pragma once

#include <cstdint>

#include "sched/snapshot.h"

namespace triptych {

/// Rows of a sequence that could go forward now: pending ones before the first item that is not
/// encoded. `encoded(media)` says which are, those finished in this very step included.
template <typename Encoded>
int64_t ready_rows(const SequenceState& sequence, const Encoded& encoded) {
  for (const MediaState& media : sequence.media) {
    if (media.end() <= sequence.n_cached || encoded(media)) continue;
    return media.position > sequence.n_cached ? media.position - sequence.n_cached : 0;
  }
  return sequence.pending_rows();
}

/// Largest legal chunk of at most `most` rows. A chunk may end anywhere in text and at the end of a
/// media span, and inside one only when the span alone is longer than `chunk_rows`. 0 when no legal
/// chunk is that small.
int64_t legal_chunk(const SequenceState& sequence, int64_t most, int64_t chunk_rows);

/// Smallest legal chunk: 1 row of text, or what is left of a media span that goes whole.
int64_t smallest_chunk(const SequenceState& sequence, int64_t chunk_rows);

}  // namespace triptych
