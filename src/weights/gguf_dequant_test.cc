#include "weights/gguf_dequant.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "weights/checkpoint_fixture.h"

namespace triptych {
namespace {

/// One block with its header values as f16 and quants 0, 1, 2, ... as the type packs them.
std::string block(const std::vector<float>& header, const std::vector<uint8_t>& quants) {
  std::string out = f16_bytes(header);
  out.append(reinterpret_cast<const char*>(quants.data()), quants.size());
  return out;
}

std::vector<float> to_f32(GgmlType type, const std::string& blocks, int64_t n) {
  std::vector<float> out(static_cast<size_t>(n));
  gguf_convert(type, reinterpret_cast<const std::byte*>(blocks.data()), n, DType::kF32, out.data());
  return out;
}

/// Byte i holds quant i low and quant i + 16 high, each `(index * 5) % 16`.
std::vector<uint8_t> nibbles() {
  std::vector<uint8_t> out(16);
  for (int i = 0; i < 16; ++i) {
    out[static_cast<size_t>(i)] = static_cast<uint8_t>((i * 5 % 16) | (((i + 16) * 5 % 16) << 4));
  }
  return out;
}

TEST(GgufDequant, Q4_0) {
  const std::vector<float> x = to_f32(GgmlType::kQ4_0, block({0.5F}, nibbles()), 32);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(x[static_cast<size_t>(i)], 0.5F * static_cast<float>(i * 5 % 16 - 8)) << i;
  }
}

TEST(GgufDequant, Q4_1) {
  const std::vector<float> x = to_f32(GgmlType::kQ4_1, block({0.25F, -1.5F}, nibbles()), 32);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(x[static_cast<size_t>(i)], 0.25F * static_cast<float>(i * 5 % 16) - 1.5F) << i;
  }
}

TEST(GgufDequant, Q8_0OverTwoBlocks) {
  std::vector<uint8_t> quants(32);
  for (int i = 0; i < 32; ++i) quants[static_cast<size_t>(i)] = static_cast<uint8_t>(i * 8 - 128);
  const std::string blocks = block({2.0F}, quants) + block({-0.125F}, quants);
  const std::vector<float> x = to_f32(GgmlType::kQ8_0, blocks, 64);
  for (int i = 0; i < 32; ++i) {
    const auto q = static_cast<float>(i * 8 - 128);
    EXPECT_EQ(x[static_cast<size_t>(i)], 2.0F * q);
    EXPECT_EQ(x[static_cast<size_t>(i + 32)], -0.125F * q);
  }
}

TEST(GgufDequant, RoundsTo16BitsToNearest) {
  std::vector<uint8_t> quants(32, 127);
  const std::string one = block({0.333F}, quants);
  const float exact = to_f32(GgmlType::kQ8_0, one, 32)[0];
  std::vector<uint16_t> halves(32);
  const auto* bytes = reinterpret_cast<const std::byte*>(one.data());
  gguf_convert(GgmlType::kQ8_0, bytes, 32, DType::kBF16, halves.data());
  EXPECT_EQ(halves[31], f32_to_bf16(exact));
  gguf_convert(GgmlType::kQ8_0, bytes, 32, DType::kF16, halves.data());
  EXPECT_EQ(halves[31], f32_to_f16(exact));
}

TEST(GgufDequant, FloatsStayAsTheyAre) {
  EXPECT_EQ(gguf_row_dtype(GgmlType::kF32, DType::kBF16), DType::kF32);
  EXPECT_EQ(gguf_row_dtype(GgmlType::kF16, DType::kBF16), DType::kF16);
  EXPECT_EQ(gguf_row_dtype(GgmlType::kBF16, DType::kF16), DType::kBF16);
  EXPECT_EQ(gguf_row_dtype(GgmlType::kQ4_1, DType::kF16), DType::kF16);
  const std::string bytes = f16_bytes({1, 2, 3});
  std::string out(bytes.size(), '\0');
  gguf_convert(GgmlType::kF16, reinterpret_cast<const std::byte*>(bytes.data()), 3, DType::kF16,
               out.data());
  EXPECT_EQ(out, bytes);
}

}  // namespace
}  // namespace triptych
