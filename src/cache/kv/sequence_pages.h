#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "cache/kv/page_layout.h"
#include "cache/kv/prefix_index.h"
#include "cache/kv/prefix_key.h"

namespace triptych {

/// The block table of one sequence: which pages hold its keys and values, and how far. The layout
/// knows all tokens that the sequence has so far, pages are there for the first of them
/// (n_reserved), and n_stored of those are written. A page is written by one sequence only, while
/// it takes tokens; from the moment it is closed and stored it never changes and may be shared.
/// The pages go back to the pool with the object. One thread (the engine's).
class SequencePages {
 public:
  /// `index` outlives the object. Without a root nothing is looked up or published.
  SequencePages(PrefixIndex& index, PageLayout layout, const std::optional<PrefixKey>& root,
                std::vector<MediaId> kept = {});
  ~SequencePages() { release(); }
  SequencePages(SequencePages&& other) noexcept;
  SequencePages& operator=(SequencePages&& other) noexcept;

  const PageLayout& layout() const { return layout_; }
  const std::vector<int32_t>& pages() const { return pages_; }
  /// [n_pages + 1] for the whole layout (page_layout.h), which may be longer than pages().
  const std::vector<int32_t>& page_begin() const { return layout_.page_begin(); }
  int64_t n_tokens() const { return layout_.n_tokens(); }
  int64_t n_reserved() const { return layout_.begin(static_cast<int64_t>(pages_.size())); }
  int64_t n_stored() const { return n_stored_; }
  int64_t n_published() const { return n_published_; }
  /// Nothing when the sequence does not take part in prefix caching.
  const PrefixChain* chain() const { return chain_ ? &*chain_ : nullptr; }

  /// How many tokens adopt() would find. Changes nothing but the chain.
  Result<int64_t> n_cached(std::span<const int32_t> ids);
  /// Takes the longest cached prefix into an empty table and returns its tokens, which count as
  /// stored. It ends before the last token, whose row somebody must compute to draw the next, and
  /// never inside a media run. `ids` are the sequence's tokens [n_tokens()].
  Result<int64_t> adopt(std::span<const int32_t> ids);

  /// `n` more tokens are known: text, at the end.
  Status extend(int64_t n) { return layout_.extend(n); }
  /// Pages for the first `n_tokens` tokens: all or nothing, prefixes that nobody uses are evicted
  /// for it. kResourceExhausted with the numbers; kInternal beyond the layout.
  Status reserve(int64_t n_tokens);
  /// How many pages reserve() would ask for.
  int64_t n_pages_missing(int64_t n_tokens) const;
  /// `n` tokens more have their keys and values in reserved pages. kInternal beyond those.
  Status commit(int64_t n);
  /// Gives back reserved pages that hold no token yet.
  void roll_back();

  /// Offers all pages that are closed and stored to the index, and takes the index's page where it
  /// has those contents already. Between steps only: no kernel may be reading the table. `ids` as
  /// for adopt().
  Status publish(std::span<const int32_t> ids);

  /// Copies all bytes of a page into another.
  using CopyPage = std::function<void(std::span<const std::byte> from, std::span<std::byte> to)>;
  /// A second sequence with the same tokens stored, for n > 1: closed pages are shared, an open
  /// last one is copied into a page of its own. kResourceExhausted, with nothing changed.
  Result<SequencePages> fork(const CopyPage& copy) const;

  /// Gives back all pages, as preemption does. Tokens, layout and keys stay, so that reserve() and
  /// adopt() can start over.
  void release();

 private:
  /// Whether page `i` of the table is closed with all its tokens stored.
  bool is_complete(int64_t i) const;
  /// Leading pages of the layout that adopt() may take.
  Result<int64_t> longest_prefix(std::span<const int32_t> ids);

  PrefixIndex* index_;
  PageLayout layout_;
  std::vector<MediaId> kept_;  ///< by media run
  std::optional<PrefixChain> chain_;
  std::vector<int32_t> pages_;
  int64_t n_stored_ = 0;
  int64_t n_published_ = 0;  ///< leading pages that the index holds, or held until it was cleared
  bool may_publish_ = true;
};

}  // namespace triptych
