#pragma once

#include <random>
#include <vector>

#include "rig.h"

namespace triptych::bench {

/// Random requests with answers of 16 to 47 tokens, 30 % of them about a picture that nobody has
/// shown before.
class MixedLoad {
 public:
  explicit MixedLoad(uint32_t seed) : random_(seed) {}

  /// Poisson arrivals.
  std::vector<Arrival> arrivals(double per_s, double seconds);
  /// Requests a second that `engine` answers with `most_open` of them in work. It is warm then.
  double capacity(MultiModalEngine& engine, size_t most_open);

 private:
  Arrival next(double at_ms);

  std::mt19937 random_;
  uint32_t n_pictures_ = 0;
};

}  // namespace triptych::bench
