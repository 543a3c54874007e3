#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "cache/content_key_hash.h"
#include "cache/eviction_clock.h"
#include "cache/kv/page_pool.h"
#include "cache/kv/prefix_key.h"
#include "cache/kv/recompute_cost.h"

namespace triptych {

/// Counts since the start. Arrays are by Modality.
struct PrefixIndexStats {
  int64_t lookups = 0;      ///< match() calls
  int64_t pages_asked = 0;  ///< keys they came with
  std::array<int64_t, 4> pages_hit{};
  int64_t tokens_saved = 0;
  int64_t published = 0;
  int64_t duplicates = 0;  ///< pages given up for one that the index had already
  int64_t evicted = 0;
  int64_t broken_links = 0;  ///< entries whose parent was not the one asked for; must stay 0
};

/// A closed page with complete contents, as it is offered to the index.
struct PublishedPage {
  PrefixKey key{};
  PrefixKey parent{};  ///< key of the page before; the root's for the first
  int32_t page = 0;
  int32_t page_before = -1;  ///< in the same table; -1 for the first
  int64_t position = 0;      ///< of its first token
  int64_t n_tokens = 0;
};

/// Which pages hold the KV of which prefix. The index holds a reference to each page it knows, so
/// contents outlive the sequences that computed them until the pool runs short. Then the pages that
/// nobody else holds go, the lowest EvictionRank first and no page before those behind it: cost per
/// byte from RecomputeCost, recency from match(). One thread (the engine's).
class PrefixIndex {
 public:
  struct Entry {
    PrefixKey parent{};
    bool is_first = false;  ///< its parent is a root, which has no entry
    int32_t page = 0;
    int64_t n_tokens = 0;
    int64_t n_children = 0;
    double cost = 0;  ///< FLOPs
    EvictionRank rank;
  };
  using Entries = std::unordered_map<PrefixKey, Entry, ContentKeyHash>;

  /// `pool` outlives the index.
  PrefixIndex(PagePool& pool, const RecomputeCost& cost) : pool_(&pool), cost_(cost) {}
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;
  ~PrefixIndex() { clear(); }

  PagePool& pool() const { return *pool_; }

  /// How many of `keys`, from the first on, are there. Changes and counts nothing. `parent` is the
  /// key in front of the first.
  int64_t longest_run(const PrefixKey& parent, std::span<const PrefixKey> keys) const;
  /// The pages of that run, each shared once more for the caller, and used now.
  std::vector<int32_t> match(const PrefixKey& parent, std::span<const PrefixKey> keys);

  /// Takes a page in; from then on nobody writes it. Returns the page that holds these contents:
  /// the one offered, or the one that was there first, then shared once more for the caller in
  /// place of the one offered, which is dropped. kFailedPrecondition when the index does not hold
  /// the very page before (it was cleared meanwhile): a table must hold all pages in front of an
  /// indexed one, or they could be evicted before it.
  Result<int32_t> publish(const PublishedPage& offered);

  /// Frees up to `n_pages` pages and returns how many.
  int64_t evict(int64_t n_pages);
  /// Pages from the pool, after evicting as many as are missing: all or nothing, and nothing is
  /// evicted in vain. kResourceExhausted with the numbers.
  Result<std::vector<int32_t>> allocate(int64_t n_pages);
  /// Pages that allocate() could give now.
  int64_t n_available() const { return pool_->n_free() + pool_->n_reclaimable(); }

  /// Forgets everything; sequences keep the pages they hold.
  void clear();

  const Entries& entries() const { return entries_; }
  const PrefixIndexStats& stats() const { return stats_; }

 private:
  double page_bytes(int32_t page) const;
  void touch(const PrefixKey& key, Entry& entry);
  void forget(Entries::iterator entry);

  PagePool* pool_;
  RecomputeCost cost_;
  EvictionClock clock_;
  Entries entries_;
  std::set<std::pair<EvictionRank, PrefixKey>> leaves_;  ///< entries without children
  PrefixIndexStats stats_;
};

}  // namespace triptych
