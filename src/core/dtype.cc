#include "core/dtype.h"

#include <fmt/format.h>

namespace triptych {

std::string_view dtype_name(DType t) {
  switch (t) {
    case DType::kF32:
      return "f32";
    case DType::kBF16:
      return "bf16";
    case DType::kF16:
      return "f16";
    case DType::kI8:
      return "i8";
    case DType::kU8:
      return "u8";
    case DType::kI32:
      return "i32";
  }
  return "?";
}

Result<DType> parse_dtype(std::string_view name) {
  for (DType t : {DType::kF32, DType::kBF16, DType::kF16, DType::kI8, DType::kU8, DType::kI32}) {
    if (dtype_name(t) == name) return t;
  }
  return invalid_argument(
      fmt::format("number format \"{}\" is unknown: use f32, bf16, f16, i8, u8 or i32", name));
}

float f16_to_f32(uint16_t v) {
  const uint32_t sign = static_cast<uint32_t>(v & 0x8000u) << 16;
  const uint32_t exponent = (v >> 10) & 0x1f;
  const uint32_t mantissa = v & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  }
  // Zero and subnormals: mantissa * 2^-24, exact in f32.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

uint16_t f32_to_f16(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00);
  if (rest >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00);
  if (rest < 0x38800000u) {
    // Subnormal result: adding 0.5 lets the FPU round the mantissa at the right bit.
    const float shifted = std::bit_cast<float>(rest) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t odd = (rest >> 13) & 1;
  const uint32_t rounded = rest + 0xfffu + odd - (112u << 23);
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

}  // namespace triptych
