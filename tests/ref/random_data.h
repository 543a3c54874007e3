#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace triptych::ref {

/// n normally distributed floats, the same for the same seed.
inline std::vector<float> random_floats(int64_t n, uint32_t seed, float scale = 1.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> out(static_cast<size_t>(n));
  for (float& v : out) v = normal(generator);
  return out;
}

}  // namespace triptych::ref
