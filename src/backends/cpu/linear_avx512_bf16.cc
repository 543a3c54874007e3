// clang-format off: the lanes come before the kernels that are written over them
#include "backends/cpu/lanes_avx512.h"
#include "backends/cpu/linear_avx512_rows.inl.h"
#include "backends/cpu/linear_epilogue.inl.h"
#include "backends/cpu/linear_pack_bf16.inl.h"
// clang-format on

#include <cstring>

namespace triptych {
namespace {

/// A pair of bf16 products added to an f32 sum in each lane.
inline Lanes dot_pairs(Lanes sum, __m512i a, __m512i b) {
  return {_mm512_dpbf16_ps(sum.v, (__m512bh)a, (__m512bh)b)};
}

/// The same pair of bf16 in all lanes. It is made opaque because clang 16 crashes on a broadcast
/// that it sees used as a vector of bf16.
inline __m512i splat_pair(int pair) {
  __m512i out = _mm512_set1_epi32(pair);
  __asm__("" : "+v"(out));
  return out;
}

struct StepDot : StepBase<2, 64> {
  template <int MR, int NP>
  static TRIPTYCH_ALWAYS_INLINE void run(const std::byte* a, const std::byte* w,
                                         int64_t panel_bytes, Lanes (&acc)[NP][MR]) {
    __m512i b[NP];
    unroll<NP>([&](auto p) __attribute__((always_inline)) {
      b[p.value] = _mm512_loadu_si512(w + p.value * panel_bytes);
    });
    unroll<MR>([&](auto r) __attribute__((always_inline)) {
      int pair = 0;
      std::memcpy(&pair, a + r.value * 64, sizeof(pair));
      const __m512i x = splat_pair(pair);
      unroll<NP>([&](auto p) __attribute__((always_inline)) {
        acc[p.value][r.value] = dot_pairs(acc[p.value][r.value], x, b[p.value]);
      });
    });
  }
};

int64_t peak(int64_t steps, float* sink) {
  constexpr int kChains = 16;
  Lanes acc[kChains];
  const __m512i x = splat_pair(static_cast<int>(sink[0]));
  for (Lanes& a : acc) a = Lanes::splat(sink[0]);
  for (int64_t i = 0; i < steps; ++i) {
    unroll<kChains>([&](auto c) __attribute__((always_inline)) {
      acc[c.value] = dot_pairs(acc[c.value], x, x);
    });
  }
  for (int c = 1; c < kChains; ++c) acc[0] = acc[0] + acc[c];
  acc[0].store(sink);
  return steps * kChains * 32 * 2;
}

}  // namespace

LinearKernels linear_avx512_bf16() {
  LinearKernels out;
  fill_avx512_rows<StepDot, 32>(out);
  out.pack = &pack_strip_bf16<1>;
  out.chunk = 32;
  out.epilogue = &linear_epilogue;
  return out;
}

PeakLoop peak_loop_avx512_bf16() { return &peak; }

}  // namespace triptych
