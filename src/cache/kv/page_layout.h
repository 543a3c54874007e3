#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "core/tensor_registry.h"

namespace triptych {

/// Where a media item's rows stand in a sequence, and of what kind they are.
struct MediaRun {
  int64_t position = 0;
  int64_t length = 0;  ///< at least 1
  Modality modality = Modality::kImage;
};

/// How a sequence is cut into pages: pure arithmetic over its length and its media, so every part
/// that asks gets the same answer. A page holds up to 16 tokens in a row. A media run starts on a
/// page boundary and owns its pages; text behind it starts on a new page. Only the last page can
/// ever take more tokens, and only if it is text.
class PageLayout {
 public:
  PageLayout() = default;
  /// A sequence of `n_tokens` whose media are `runs`, by position. kInvalidArgument for runs that
  /// are empty, overlap, are out of order or leave the sequence; kOutOfRange beyond 2^31 - 1.
  static Result<PageLayout> plan(int64_t n_tokens, std::span<const MediaRun> runs);

  /// Adds text behind the end, as decoding does. kOutOfRange beyond 2^31 - 1 tokens.
  Status extend(int64_t n_tokens);

  int64_t n_tokens() const { return page_begin_.back(); }
  int64_t n_pages() const { return static_cast<int64_t>(pages_.size()); }

  /// [n_pages + 1]: position of each page's first token, then n_tokens(). The token at position p
  /// of page i stands in slot p - page_begin[i].
  const std::vector<int32_t>& page_begin() const { return page_begin_; }
  int64_t begin(int64_t page) const { return page_begin_[static_cast<size_t>(page)]; }
  int64_t n_filled(int64_t page) const { return begin(page + 1) - begin(page); }
  Modality modality(int64_t page) const { return pages_[static_cast<size_t>(page)].modality; }
  /// Index of the media run that owns the page; -1 for text.
  int64_t run(int64_t page) const { return pages_[static_cast<size_t>(page)].run; }
  /// Place of a page within its media run; 0 for text.
  int64_t index_in_run(int64_t page) const {
    return pages_[static_cast<size_t>(page)].index_in_run;
  }
  /// Whether the page can take no more tokens: full, of media, or followed by another page.
  bool is_closed(int64_t page) const;

  /// Page of a token, 0 <= position < n_tokens().
  int64_t page_of(int64_t position) const;
  /// Pages that hold the first `n` tokens.
  int64_t pages_for(int64_t n) const { return n <= 0 ? 0 : page_of(n - 1) + 1; }
  /// `n_pages` cut back, if it ends inside a media run, to where that run starts.
  int64_t whole_runs(int64_t n_pages) const;

  /// Slots that no token can take any more: at most 15 a media run and 15 a stretch of text.
  int64_t n_wasted() const;

 private:
  struct Page {
    Modality modality = Modality::kText;
    int32_t run = -1;
    int32_t index_in_run = 0;
  };

  /// Starts new pages for `n` tokens behind the end; `page` is the first one's kind.
  void append(int64_t n, Page page);

  std::vector<Page> pages_;
  std::vector<int32_t> page_begin_ = {0};
};

}  // namespace triptych
