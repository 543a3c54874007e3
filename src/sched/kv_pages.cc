#include "sched/kv_pages.h"

#include <algorithm>

#include "base/checked.h"

namespace triptych {

int64_t kv_pages_for_rows(const SequenceState& sequence, int64_t n_rows, int64_t page_tokens) {
  int64_t pages = 0;
  int64_t text_begin = 0;
  for (const MediaState& media : sequence.media) {
    if (media.position >= n_rows) break;
    pages += ceil_div(media.position - text_begin, page_tokens) +
             ceil_div(std::min(media.length, n_rows - media.position), page_tokens);
    text_begin = media.end();
  }
  return pages + ceil_div(std::max<int64_t>(n_rows - text_begin, 0), page_tokens);
}

int64_t kv_pages_to_add(const SequenceState& sequence, int64_t n_rows, int64_t page_tokens) {
  if (n_rows <= 0) return 0;
  const int64_t all = kv_pages_for_rows(sequence, sequence.n_cached + n_rows, page_tokens);
  return std::max<int64_t>(all - sequence.n_pages_held, 0) + sequence.n_copy_pages;
}

int64_t rows_within_pages(const SequenceState& sequence, int64_t n_rows, int64_t n_pages,
                          int64_t page_tokens) {
  if (kv_pages_to_add(sequence, n_rows, page_tokens) <= n_pages) return n_rows;
  int64_t fits = 0;
  int64_t too_many = n_rows;
  while (too_many - fits > 1) {
    const int64_t middle = fits + (too_many - fits) / 2;
    (kv_pages_to_add(sequence, middle, page_tokens) <= n_pages ? fits : too_many) = middle;
  }
  return fits;
}

}  // namespace triptych
