#pragma once

#include <cstdint>

#include "sched/snapshot.h"

namespace triptych {

/// KV pages that hold the first `n_rows` rows of a sequence. Text fills pages of `page_tokens`; a
/// media span starts on a page boundary and owns its pages, so the text behind it starts a new one
/// (src/cache/kv counts the same way).
int64_t kv_pages_for_rows(const SequenceState& sequence, int64_t n_rows, int64_t page_tokens);

/// Pages to take before `n_rows` more rows can be written, copies of shared pages included.
int64_t kv_pages_to_add(const SequenceState& sequence, int64_t n_rows, int64_t page_tokens);

/// Most rows, at most `n_rows`, that `n_pages` more pages allow. 0 when not even one.
int64_t rows_within_pages(const SequenceState& sequence, int64_t n_rows, int64_t n_pages,
                          int64_t page_tokens);

}  // namespace triptych
