#pragma once

#include <cstdint>
#include <vector>

namespace triptych::ref {

/// Patches of [channels, height, width] pixels in reading order, each as (channel, y, x): element
/// by element, as an unfolded convolution reads them.
inline std::vector<float> patchify(const std::vector<float>& pixels, int64_t channels,
                                   int64_t height, int64_t width, int64_t patch) {
  std::vector<float> out;
  for (int64_t py = 0; py + patch <= height; py += patch) {
    for (int64_t px = 0; px + patch <= width; px += patch) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t y = py; y < py + patch; ++y) {
          for (int64_t x = px; x < px + patch; ++x) {
            out.push_back(pixels[static_cast<size_t>((c * height + y) * width + x)]);
          }
        }
      }
    }
  }
  return out;
}

}  // namespace triptych::ref
