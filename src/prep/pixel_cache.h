#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <mutex>

#include "prep/media_flights.h"

namespace triptych {

/// Prepared media that were used lately, so that a picture that comes again is not decoded again.
/// Within a budget of bytes the one used longest ago leaves first; what is in use elsewhere lives
/// on there. Thread-safe.
class PixelCache {
 public:
  using Media = MediaFlights::Media;
  using Key = MediaFlights::Key;

  /// 0 keeps nothing.
  explicit PixelCache(uint64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  /// Null when it is not here.
  Media find(const Key& key);
  void insert(const Key& key, Media media);
  uint64_t n_bytes() const;

 private:
  struct Entry {
    Key key;
    Media media;
  };

  const uint64_t budget_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  ///< the one used last in front
  std::map<Key, std::list<Entry>::iterator> by_key_;
  uint64_t n_bytes_ = 0;
};

}  // namespace triptych
