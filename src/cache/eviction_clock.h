#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

namespace triptych {

/// Place of a cached thing in the order of eviction; the lowest goes first.
struct EvictionRank {
  double value = 0;
  uint64_t use = 0;  ///< of two equal values the one used longer ago goes first

  auto operator<=>(const EvictionRank&) const = default;
};

/// Eviction by cost per byte with recency: GreedyDual-Size (Cao and Irani, "Cost-Aware WWW Proxy
/// Caching Algorithms", 1997). At each use,
///
///   rank = L + recompute cost / bytes,
///
/// where L is the rank of the last thing that was evicted. What is dear to make again stays longer,
/// but each eviction raises L, so what nobody uses is overtaken by what is used. Things of equal
/// cost per byte leave in the order of their last use. There is no time in it: the same calls give
/// the same order.
class EvictionClock {
 public:
  /// The rank of something used now. `cost` in any unit that all things of a cache share.
  EvictionRank touch(double cost, double n_bytes) {
    return {floor_ + cost / std::max(n_bytes, 1.0), ++uses_};
  }
  void evicted(const EvictionRank& rank) { floor_ = std::max(floor_, rank.value); }

 private:
  double floor_ = 0;
  uint64_t uses_ = 0;
};

}  // namespace triptych
