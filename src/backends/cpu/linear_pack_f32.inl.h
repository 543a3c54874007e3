#pragma once

#include <cstring>

#include "backends/cpu/linear_isa.h"

namespace triptych {
namespace {

/// LinearKernels::pack for formats with f32 activations: chunks of 16 floats.
void pack_strip_f32(const float* x, int64_t ldx, int rows, int64_t k, std::byte* strip) {
  constexpr int64_t kChunk = 16;
  auto* out = reinterpret_cast<float*>(strip);
  for (int64_t k0 = 0; k0 < k; k0 += kChunk) {
    const int64_t n = k - k0 < kChunk ? k - k0 : kChunk;
    for (int r = 0; r < rows; ++r, out += kChunk) {
      const float* row = x + r * ldx + k0;
      if (n == kChunk) {
        std::memcpy(out, row, kChunk * sizeof(float));
        continue;
      }
      std::memcpy(out, row, static_cast<size_t>(n) * sizeof(float));
      std::memset(out + n, 0, static_cast<size_t>(kChunk - n) * sizeof(float));
    }
  }
}

}  // namespace
}  // namespace triptych
