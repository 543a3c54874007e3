#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/content_key_hash.h"
#include "cache/eviction_clock.h"
#include "core/tensor.h"
#include "core/tensor_registry.h"
#include "request/request.h"

namespace triptych {

/// Embeddings of a media item, [rows, D]. Whoever holds the pointer keeps the entry from being
/// evicted.
using MediaFeatures = std::shared_ptr<const Tensor>;

/// One run of the tower: a picture, or one of the tiles or clips that an item is cut into.
struct EncodeUnit {
  MediaId id{};          ///< of the features (feature_id.h)
  uint64_t n_bytes = 0;  ///< that they will take
  double cost = 0;       ///< FLOPs of tower and projector
};

enum class EncoderState : uint8_t {
  kHit,       ///< here are the features
  kInFlight,  ///< another is encoding them; finish() or fail() will name this requester
  kBegin,     ///< yours to encode: finish() or fail() must follow
};

struct EncoderLookup {
  EncoderState state = EncoderState::kBegin;
  MediaFeatures features;  ///< of kHit
};

/// Items looked up, of one modality.
struct EncoderCounts {
  int64_t hits = 0;
  int64_t joined = 0;   ///< nothing to encode, but another's encoding to wait for
  int64_t partial = 0;  ///< some of the item's units to encode, not all
  int64_t misses = 0;

  int64_t total() const { return hits + joined + partial + misses; }
  /// Items that needed no encoding of their own; nothing when none was looked up.
  std::optional<double> hit_rate() const;
};

struct EncoderCacheStats {
  std::array<EncoderCounts, 4> items{};  ///< by Modality
  int64_t evicted = 0;
  int64_t uncached = 0;  ///< features for which there was no room
  int64_t failed = 0;
};

/// Features by what they are: 256-bit ids, a budget in bytes, each thing encoded once. Stored
/// features and those that are being encoded never take more than the budget together. To make
/// room, entries that nobody uses go, the lowest EvictionRank first (cost per byte with recency).
/// Features for which no room can be made, because they are larger than the budget or because
/// everything is in use, go uncached to those who asked for them; nobody ever waits for room.
/// One thread (the engine's): "waiting" is a requester's number on a list.
class EncoderCache {
 public:
  explicit EncoderCache(uint64_t budget_bytes) : budget_(budget_bytes) {}

  /// Looks one item up and counts it. One lookup a unit, in order; units of kBegin are being
  /// encoded by `requester` from here on.
  std::vector<EncoderLookup> find_or_begin(std::span<const EncodeUnit> units, Modality modality,
                                           uint64_t requester);
  EncoderLookup find_or_begin(const EncodeUnit& unit, Modality modality, uint64_t requester);
  /// Whether the features are there. Changes and counts nothing.
  bool contains(const MediaId& id) const;

  struct Finished {
    MediaFeatures features;
    bool cached = false;            ///< otherwise they live as long as somebody holds them
    std::vector<uint64_t> waiters;  ///< hand them the features, in this order
  };
  /// The features of an id that was begun. kFailedPrecondition when it was not.
  Result<Finished> finish(const MediaId& id, Tensor features);
  /// Encoding was given up: it failed, or its requester was cancelled. Those named waited for it:
  /// they look the id up again, and the first of them gets it to encode.
  std::vector<uint64_t> fail(const MediaId& id);
  /// `requester` waits no longer. It may be none of those waiting.
  void leave(const MediaId& id, uint64_t requester);

  /// Forgets all features that are not being encoded. Those in use live on, uncached.
  void clear();

  uint64_t budget_bytes() const { return budget_; }
  uint64_t stored_bytes() const { return stored_; }
  uint64_t reserved_bytes() const { return reserved_; }  ///< for features being encoded
  uint64_t in_use_bytes() const;                         ///< of the stored ones
  int64_t n_entries() const { return static_cast<int64_t>(ranks_.size()); }
  int64_t n_in_flight() const { return static_cast<int64_t>(entries_.size()) - n_entries(); }
  const EncoderCacheStats& stats() const { return stats_; }

  /// Sums and lists agree and the budget is kept; kInternal says what does not hold.
  Status check_invariants() const;

 private:
  struct Entry {
    MediaFeatures features;  ///< nothing while in flight
    uint64_t n_bytes = 0;    ///< stored, or reserved while in flight (0: no room was made)
    double cost = 0;
    EvictionRank rank;
    std::vector<uint64_t> waiters;

    bool in_flight() const { return features == nullptr; }
    bool in_use() const { return features.use_count() > 1; }
  };

  EncoderLookup look_up(const EncodeUnit& unit, uint64_t requester);
  void touch(const MediaId& id, Entry& entry);
  /// Evicts until `n_bytes` more fit; false, with nothing evicted, when they cannot.
  bool make_room(uint64_t n_bytes);

  uint64_t budget_;
  uint64_t stored_ = 0;
  uint64_t reserved_ = 0;
  EvictionClock clock_;
  std::unordered_map<MediaId, Entry, ContentKeyHash> entries_;
  std::set<std::pair<EvictionRank, MediaId>> ranks_;  ///< of entries with features
  EncoderCacheStats stats_;
};

}  // namespace triptych
