#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>

namespace triptych {

/// a + b, or nothing when it does not fit. Sizes from files and requests go through these.
inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t out = 0;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

/// a * b, or nothing when it does not fit.
inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

/// Product of all factors, or nothing when it does not fit.
std::optional<uint64_t> checked_product(std::initializer_list<uint64_t> factors);

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t multiple) { return ceil_div(a, multiple) * multiple; }

}  // namespace triptych
