#pragma once

#include <immintrin.h>

#include "backends/cpu/linear_isa.h"

namespace triptych {
namespace {

/// LinearKernels::pack for bf16 activations: chunks of 32, rounded to nearest even. Rows missing
/// to a whole quantum of `kQuantum` become zero.
template <int kQuantum>
void pack_strip_bf16(const float* x, int64_t ldx, int rows, int64_t k, std::byte* strip) {
  constexpr int64_t kChunk = 32;
  const int padded = (rows + kQuantum - 1) / kQuantum * kQuantum;
  for (int first = 0; first < padded; first += kQuantum == 1 ? padded : kQuantum) {
    const int last = kQuantum == 1 ? padded : first + kQuantum;
    for (int64_t k0 = 0; k0 < k; k0 += kChunk) {
      const int64_t left = k - k0;
      const auto mask = left >= kChunk ? 0xffffffffu : (1u << left) - 1;
      for (int r = first; r < last; ++r, strip += 64) {
        const float* row = x + r * ldx + k0;
        const __mmask32 m = r < rows ? mask : 0;
        const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(m), row);
        const __m512 high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(m >> 16), row + 16);
        _mm512_storeu_si512(strip, (__m512i)_mm512_cvtne2ps_pbh(high, low));
      }
    }
  }
}

}  // namespace
}  // namespace triptych
