#pragma once

// Only for files compiled with AVX-512 flags. Everything has internal linkage, so that no code
// with these instructions is shared with files of a lower level.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace triptych {
namespace {

/// Sixteen floats: one weight panel wide.
struct Lanes {
  __m512 v;

  static Lanes zero() { return {_mm512_setzero_ps()}; }
  static Lanes splat(float f) { return {_mm512_set1_ps(f)}; }
  static Lanes load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Lanes load_first(const float* p, int n) {
    return {_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p)};
  }
  static Lanes load_f16(const std::byte* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  /// Sixteen pairs of bf16 as they lie in a panel: even and odd elements.
  static Lanes load_bf16_even(const std::byte* p) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16))};
  }
  static Lanes load_bf16_odd(const std::byte* p) {
    return {_mm512_castsi512_ps(
        _mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
  }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  void store_first(float* p, int n) const {
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), v);
  }
};

inline Lanes fma(Lanes a, Lanes b, Lanes c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline Lanes operator+(Lanes a, Lanes b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Lanes operator-(Lanes a, Lanes b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Lanes operator*(Lanes a, Lanes b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Lanes operator/(Lanes a, Lanes b) { return {_mm512_div_ps(a.v, b.v)}; }
/// The second operand where one is NaN.
inline Lanes min_of(Lanes a, Lanes b) { return {_mm512_min_ps(a.v, b.v)}; }
inline Lanes max_of(Lanes a, Lanes b) { return {_mm512_max_ps(a.v, b.v)}; }
inline Lanes abs_of(Lanes a) { return {_mm512_abs_ps(a.v)}; }
inline Lanes round_of(Lanes a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
/// a 2^n for whole n in [-126, 127].
inline Lanes times_exp2(Lanes a, Lanes n) { return {_mm512_scalef_ps(a.v, n.v)}; }
/// a where x is negative, else b.
inline Lanes where_negative(Lanes x, Lanes a, Lanes b) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x.v, _mm512_setzero_ps(), _CMP_LT_OQ), b.v, a.v)};
}

}  // namespace
}  // namespace triptych
