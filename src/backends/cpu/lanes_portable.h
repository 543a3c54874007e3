#pragma once

// The lanes of lanes_avx512.h in plain C++; internal linkage likewise.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/dtype.h"

namespace triptych {
namespace {

/// Sixteen floats: one weight panel wide.
struct Lanes {
  float v[16];

  template <typename F>
  static Lanes each(F f) {
    Lanes out;
    for (int i = 0; i < 16; ++i) out.v[i] = f(i);
    return out;
  }
  static Lanes zero() { return splat(0.0f); }
  static Lanes splat(float f) {
    return each([&](int) { return f; });
  }
  static Lanes load(const float* p) {
    return each([&](int i) { return p[i]; });
  }
  static Lanes load_first(const float* p, int n) {
    return each([&](int i) { return i < n ? p[i] : 0.0f; });
  }
  static Lanes load_f16(const std::byte* p) {
    return each([&](int i) {
      uint16_t half = 0;
      std::memcpy(&half, p + 2 * i, 2);
      return f16_to_f32(half);
    });
  }
  static uint32_t pair(const std::byte* p, int i) {
    uint32_t word = 0;
    std::memcpy(&word, p + 4 * i, 4);
    return word;
  }
  /// Sixteen pairs of bf16 as they lie in a panel: even and odd elements.
  static Lanes load_bf16_even(const std::byte* p) {
    return each([&](int i) { return std::bit_cast<float>(pair(p, i) << 16); });
  }
  static Lanes load_bf16_odd(const std::byte* p) {
    return each([&](int i) { return std::bit_cast<float>(pair(p, i) & 0xffff0000u); });
  }
  void store(float* p) const { store_first(p, 16); }
  void store_first(float* p, int n) const {
    for (int i = 0; i < n; ++i) p[i] = v[i];
  }
};

inline Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c) {
  return Lanes::each([&](int i) { return a.v[i] * b.v[i] + c.v[i]; });
}
inline Lanes operator+(const Lanes& a, const Lanes& b) {
  return Lanes::each([&](int i) { return a.v[i] + b.v[i]; });
}
inline Lanes operator-(const Lanes& a, const Lanes& b) {
  return Lanes::each([&](int i) { return a.v[i] - b.v[i]; });
}
inline Lanes operator*(const Lanes& a, const Lanes& b) {
  return Lanes::each([&](int i) { return a.v[i] * b.v[i]; });
}
inline Lanes operator/(const Lanes& a, const Lanes& b) {
  return Lanes::each([&](int i) { return a.v[i] / b.v[i]; });
}
/// The second operand where one is NaN.
inline Lanes min_of(const Lanes& a, const Lanes& b) {
  return Lanes::each([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
inline Lanes max_of(const Lanes& a, const Lanes& b) {
  return Lanes::each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline Lanes abs_of(const Lanes& a) {
  return Lanes::each([&](int i) { return std::fabs(a.v[i]); });
}
inline Lanes round_of(const Lanes& a) {
  return Lanes::each([&](int i) { return std::nearbyint(a.v[i]); });
}
/// 2^n of whole n in [-126, 127]; 1 for NaN.
inline Lanes exp2_of_whole(const Lanes& n) {
  return Lanes::each([&](int i) {
    const int32_t whole = n.v[i] == n.v[i] ? static_cast<int32_t>(n.v[i]) : 0;
    return std::bit_cast<float>(static_cast<uint32_t>(whole + 127) << 23);
  });
}
/// a 2^n for whole n in [-126, 127].
inline Lanes times_exp2(const Lanes& a, const Lanes& n) { return a * exp2_of_whole(n); }
/// a where x is negative, else b.
inline Lanes where_negative(const Lanes& x, const Lanes& a, const Lanes& b) {
  return Lanes::each([&](int i) { return x.v[i] < 0.0f ? a.v[i] : b.v[i]; });
}

}  // namespace
}  // namespace triptych
