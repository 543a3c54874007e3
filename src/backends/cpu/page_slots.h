#pragma once

#include <cstdint>

#include "ops/attention.h"

namespace triptych {

/// Tokens of page `index` of a sequence; they stand in its first slots.
inline int64_t filled_slots(const SequenceRows& s, int64_t index) {
  return s.page_begin == nullptr ? kPageTokens : s.page_begin[index + 1] - s.page_begin[index];
}

/// Finds the page of positions that are asked for in ascending order.
class PageCursor {
 public:
  explicit PageCursor(const int32_t* page_begin) : begin_(page_begin) {}

  /// The page that `position` lies in. No page holds more than 16 tokens, so the page of a position
  /// n tokens further is at least n / 16 further: such jumps never pass it. Their number grows with
  /// the logarithm of the distance, and nothing behind the page found is read.
  int64_t page_of(int64_t position) {
    if (begin_ == nullptr) return position / kPageTokens;
    while (position >= begin_[page_ + 1]) {
      const int64_t jump = (position - begin_[page_]) / kPageTokens;
      page_ += jump > 0 ? jump : 1;
    }
    return page_;
  }

  /// Its slot, counted from the first page's first: page * 16 + slot in the page.
  int64_t slot_of(int64_t position) {
    if (begin_ == nullptr) return position;
    const int64_t page = page_of(position);
    return page * kPageTokens + position - begin_[page];
  }

 private:
  const int32_t* begin_;
  int64_t page_ = 0;
};

}  // namespace triptych
