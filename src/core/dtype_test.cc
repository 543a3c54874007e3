#include "core/dtype.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace triptych {
namespace {

constexpr DType kAll[] = {DType::kF32, DType::kBF16, DType::kF16,
                          DType::kI8,  DType::kU8,   DType::kI32};

TEST(DType, NamesAndSizes) {
  for (const DType t : kAll) {
    const Result<DType> back = parse_dtype(dtype_name(t));
    ASSERT_TRUE(back.is_ok());
    EXPECT_EQ(*back, t);
  }
  EXPECT_EQ(dtype_bytes(DType::kF32), 4);
  EXPECT_EQ(dtype_bytes(DType::kBF16), 2);
  EXPECT_EQ(dtype_bytes(DType::kF16), 2);
  EXPECT_EQ(dtype_bytes(DType::kI8), 1);
  EXPECT_EQ(dtype_bytes(DType::kU8), 1);
  EXPECT_EQ(dtype_bytes(DType::kI32), 4);
}

TEST(DType, UnknownNamesListTheKnownOnes) {
  for (const char* name : {"", "fp32", "F32", "int4"}) {
    const Status s = parse_dtype(name).status();
    EXPECT_EQ(s.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(s.message(), testing::HasSubstr("bf16"));
  }
}

/// Value of a binary16 by its definition, in double.
double f16_by_definition(uint16_t v) {
  const int exponent = (v >> 10) & 0x1f;
  const int mantissa = v & 0x3ff;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (v & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Half, EveryFiniteValueConvertsExactlyAndBack) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const auto v = static_cast<uint16_t>(i);
    if (((v >> 10) & 0x1f) == 31) continue;
    const float f = f16_to_f32(v);
    ASSERT_EQ(static_cast<double>(f), f16_by_definition(v)) << i;
    ASSERT_EQ(f32_to_f16(f), v) << i;
  }
}

TEST(Half, RoundsToNearestEven) {
  for (uint32_t i = 0; i < 0x7bff; ++i) {  // between each positive value and the next
    const auto low = static_cast<uint16_t>(i);
    const auto high = static_cast<uint16_t>(i + 1);
    const float middle = (f16_to_f32(low) + f16_to_f32(high)) / 2;  // exact in f32
    const uint16_t even = i % 2 == 0 ? low : high;
    ASSERT_EQ(f32_to_f16(middle), even) << i;
    ASSERT_EQ(f32_to_f16(-middle), even | 0x8000) << i;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), low) << i;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 1e9f)), high) << i;
  }
}

TEST(Half, SpecialValues) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(f32_to_f16(kInf), 0x7c00);
  EXPECT_EQ(f32_to_f16(-kInf), 0xfc00);
  EXPECT_EQ(f32_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(1e30f), 0x7c00);
  EXPECT_EQ(f32_to_f16(1e-30f), 0);
  EXPECT_EQ(f32_to_f16(-0.0f), 0x8000);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(f16_to_f32(0x7c00), kInf);
  EXPECT_EQ(f16_to_f32(0xfc00), -kInf);
  for (const uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u}) {
    EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(std::bit_cast<float>(bits))))) << bits;
  }
  for (uint32_t v = 0x7c01; v < 0x8000; ++v) {
    ASSERT_TRUE(std::isnan(f16_to_f32(static_cast<uint16_t>(v))));
  }
}

TEST(BFloat, EveryValueRoundTrips) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const auto v = static_cast<uint16_t>(i);
    const float f = bf16_to_f32(v);
    if (std::isnan(f)) {
      ASSERT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(f))));
    } else {
      ASSERT_EQ(f32_to_bf16(f), v);
    }
  }
}

TEST(BFloat, RoundsToNearestEven) {
  for (uint32_t i = 0; i < 0x7f80; i += 7) {
    const uint32_t bits = i << 16;
    const uint16_t low = static_cast<uint16_t>(i);
    const uint16_t high = static_cast<uint16_t>(i + 1);
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(bits | 0x7fff)), low);
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(bits | 0x8000)), i % 2 == 0 ? low : high);
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(bits | 0x8001)), high);
  }
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80) << "overflow is infinity";
  // A NaN whose payload sits in the low bits must not become infinity.
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0xffffffffu)))));
}

}  // namespace
}  // namespace triptych
