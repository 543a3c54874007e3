#pragma once

// Only for files compiled with AVX2 flags; internal linkage as in lanes_avx512.h.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace triptych {
namespace {

/// Sixteen floats: one weight panel wide.
struct Lanes {
  __m256 lo, hi;

  static __m256i mask(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Lanes zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Lanes splat(float f) { return {_mm256_set1_ps(f), _mm256_set1_ps(f)}; }
  static Lanes load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static Lanes load_first(const float* p, int n) {
    return {_mm256_maskload_ps(p, mask(n)), _mm256_maskload_ps(p + 8, mask(n - 8))};
  }
  static Lanes load_f16(const std::byte* p) {
    const auto* half = reinterpret_cast<const __m128i*>(p);
    return {_mm256_cvtph_ps(_mm_loadu_si128(half)), _mm256_cvtph_ps(_mm_loadu_si128(half + 1))};
  }
  /// Sixteen pairs of bf16 as they lie in a panel: even and odd elements.
  static Lanes load_bf16_even(const std::byte* p) {
    const auto* pairs = reinterpret_cast<const __m256i*>(p);
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_loadu_si256(pairs), 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_loadu_si256(pairs + 1), 16))};
  }
  static Lanes load_bf16_odd(const std::byte* p) {
    const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    const auto* pairs = reinterpret_cast<const __m256i*>(p);
    return {_mm256_castsi256_ps(_mm256_and_si256(_mm256_loadu_si256(pairs), upper)),
            _mm256_castsi256_ps(_mm256_and_si256(_mm256_loadu_si256(pairs + 1), upper))};
  }
  void store(float* p) const {
    _mm256_storeu_ps(p, lo);
    _mm256_storeu_ps(p + 8, hi);
  }
  void store_first(float* p, int n) const {
    _mm256_maskstore_ps(p, mask(n), lo);
    _mm256_maskstore_ps(p + 8, mask(n - 8), hi);
  }
};

inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
inline Lanes operator+(Lanes a, Lanes b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
inline Lanes operator-(Lanes a, Lanes b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
inline Lanes operator*(Lanes a, Lanes b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
inline Lanes operator/(Lanes a, Lanes b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
/// The second operand where one is NaN.
inline Lanes min_of(Lanes a, Lanes b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
inline Lanes max_of(Lanes a, Lanes b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
inline Lanes abs_of(Lanes a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}
inline Lanes round_of(Lanes a) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(a.lo, kNearest), _mm256_round_ps(a.hi, kNearest)};
}
/// 2^n of whole n in [-126, 127].
inline Lanes exp2_of_whole(Lanes n) {
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256i lo = _mm256_add_epi32(_mm256_cvtps_epi32(n.lo), bias);
  const __m256i hi = _mm256_add_epi32(_mm256_cvtps_epi32(n.hi), bias);
  return {_mm256_castsi256_ps(_mm256_slli_epi32(lo, 23)),
          _mm256_castsi256_ps(_mm256_slli_epi32(hi, 23))};
}
/// a 2^n for whole n in [-126, 127].
inline Lanes times_exp2(Lanes a, Lanes n) { return a * exp2_of_whole(n); }
/// a where x is negative, else b.
inline Lanes where_negative(Lanes x, Lanes a, Lanes b) {
  const __m256 zero = _mm256_setzero_ps();
  return {_mm256_blendv_ps(b.lo, a.lo, _mm256_cmp_ps(x.lo, zero, _CMP_LT_OQ)),
          _mm256_blendv_ps(b.hi, a.hi, _mm256_cmp_ps(x.hi, zero, _CMP_LT_OQ))};
}

}  // namespace
}  // namespace triptych
