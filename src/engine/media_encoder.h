#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "cache/encoder/encoder_cache.h"
#include "engine/step_runner.h"

namespace triptych {

/// A media item as one sequence uses it. The pointer to the features keeps them from being evicted.
struct MediaUse {
  std::shared_ptr<const PreparedMedia> media;
  MediaId feature{};       ///< identity of its embeddings
  MediaFeatures features;  ///< null until encoded, and again once the KV cache has what it needs
};

/// Turns media into embeddings, each item once however many sequences show it: the encoder cache,
/// and the jobs between two slices of their towers. The engine's thread.
class MediaEncoder {
 public:
  /// `runner` outlives the object. `budget_bytes` of features are kept.
  MediaEncoder(StepRunner& runner, uint64_t budget_bytes)
      : runner_(&runner), cache_(budget_bytes) {}

  /// Makes sure that `use` has its features, or that somebody encodes them: `sequence` if nobody
  /// does yet. `cost` is in FLOPs.
  void want(uint64_t sequence, MediaUse& use);

  /// Tower blocks that are still to run before the features are there; all of them when nobody has
  /// begun.
  int64_t blocks_left(const MediaUse& use) const;
  bool has_features(const MediaUse& use) const {
    return use.features != nullptr || cache_.contains(use.feature);
  }

  /// Runs blocks of an item that was wanted. When it is done, returns its features, for all who
  /// wait; null when there is more to do. After an error nobody is encoding the item any more.
  Result<MediaFeatures> run(const MediaId& feature, int64_t n_blocks);

  /// `sequence` needs the item no longer. True when it was the one who encoded it and others wait:
  /// its work is kept for the first of them who wants the item again, and somebody must. Given up
  /// when nobody waits.
  [[nodiscard]] bool leave(uint64_t sequence, const MediaUse& use);

  const EncoderCache& cache() const { return cache_; }

 private:
  struct Job {
    EncodeJob work;
    uint64_t owner = 0;  ///< sequence that the cache knows as the one who encodes
  };

  StepRunner* runner_;
  EncoderCache cache_;
  std::map<MediaId, Job> jobs_;
};

}  // namespace triptych
