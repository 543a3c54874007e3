#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace triptych {

/// Element types that tensors hold. Quantised blocks are not a DType: they are weight layouts
/// behind Linear (ops/linear.h).
enum class DType : uint8_t { kF32, kBF16, kF16, kI8, kU8, kI32 };

constexpr int64_t dtype_bytes(DType t) {
  switch (t) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kBF16:
    case DType::kF16:
      return 2;
    case DType::kI8:
    case DType::kU8:
      return 1;
  }
  return 0;
}

/// "f32", "bf16", "f16", "i8", "u8", "i32".
std::string_view dtype_name(DType t);
/// The inverse of dtype_name; kInvalidArgument lists the names.
Result<DType> parse_dtype(std::string_view name);

inline float bf16_to_f32(uint16_t v) {
  return std::bit_cast<float>(static_cast<uint32_t>(v) << 16);
}
/// Round to nearest even; NaN stays a NaN.
inline uint16_t f32_to_bf16(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}
/// IEEE binary16, subnormals included.
float f16_to_f32(uint16_t v);
/// Round to nearest even; overflow gives infinity.
uint16_t f32_to_f16(float f);

}  // namespace triptych
