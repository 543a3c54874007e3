#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cache/kv/page_layout.h"
#include "request/request.h"

namespace triptych {

/// What a page's keys and values were computed from: a BLAKE3 hash of 256 bits, never truncated,
/// over the key of the page before it and the page's own tokens. Equal keys mean equal contents.
/// Every part that goes into a key is framed by its length and every kind of key by its name.
using PrefixKey = std::array<uint8_t, 32>;

/// What all keys of a sequence hang on.
struct PrefixScope {
  std::string_view model;   ///< identity of weights, adapter and KV dtype
  std::string_view tenant;  ///< salt; sequences of two tenants share nothing
};

PrefixKey root_key(const PrefixScope& scope);
/// A text page that can take no more tokens: 16 ids, or fewer when media follow.
PrefixKey text_page_key(const PrefixKey& parent, std::span<const int32_t> ids);
/// Page `index_in_run` of a media run, which holds `n_rows` of the rows that `kept` identifies:
/// features, and which of them were kept.
PrefixKey media_page_key(const PrefixKey& parent, const MediaId& kept, int64_t index_in_run,
                         int64_t n_rows);

/// The keys of a sequence's pages from the first on.
class PrefixChain {
 public:
  /// A chain without pages yet.
  explicit PrefixChain(const PrefixKey& root) : root_(root) {}

  /// Adds the keys of all pages of `layout` that are closed and have none yet; each page is hashed
  /// once, however often this is called. `ids` are the sequence's tokens [layout.n_tokens()]; those
  /// under media are not looked at. `kept` has an id for each media run. kInternal when the sizes
  /// disagree.
  Status extend(const PageLayout& layout, std::span<const int32_t> ids,
                std::span<const MediaId> kept);

  int64_t size() const { return static_cast<int64_t>(pages_.size()); }
  std::span<const PrefixKey> keys() const { return pages_; }
  const PrefixKey& key(int64_t page) const { return pages_[static_cast<size_t>(page)]; }
  /// The key in front of a page: the root's for the first.
  const PrefixKey& parent(int64_t page) const { return page == 0 ? root_ : key(page - 1); }
  const PrefixKey& root() const { return root_; }

 private:
  PrefixKey root_;
  std::vector<PrefixKey> pages_;
};

}  // namespace triptych
