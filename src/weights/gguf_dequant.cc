#include "weights/gguf_dequant.h"

#include <cstring>

namespace triptych {
namespace {

constexpr int kBlock = 32;

float load_f16(const std::byte* at) {
  uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return f16_to_f32(bits);
}

// Each decodes one block of 32 elements. Four-bit types hold elements i and i + 16 in the low and
// the high half of byte i.

void decode_q4_0(const std::byte* block, float* x) {
  const float scale = load_f16(block);
  const auto* q = reinterpret_cast<const uint8_t*>(block + 2);
  for (int i = 0; i < kBlock / 2; ++i) {
    x[i] = static_cast<float>((q[i] & 15) - 8) * scale;
    x[i + kBlock / 2] = static_cast<float>((q[i] >> 4) - 8) * scale;
  }
}

void decode_q4_1(const std::byte* block, float* x) {
  const float scale = load_f16(block);
  const float offset = load_f16(block + 2);
  const auto* q = reinterpret_cast<const uint8_t*>(block + 4);
  for (int i = 0; i < kBlock / 2; ++i) {
    x[i] = static_cast<float>(q[i] & 15) * scale + offset;
    x[i + kBlock / 2] = static_cast<float>(q[i] >> 4) * scale + offset;
  }
}

void decode_q8_0(const std::byte* block, float* x) {
  const float scale = load_f16(block);
  const auto* q = reinterpret_cast<const int8_t*>(block + 2);
  for (int i = 0; i < kBlock; ++i) x[i] = static_cast<float>(q[i]) * scale;
}

void store(const float* x, DType dtype, std::byte* out) {
  if (dtype == DType::kF32) {
    std::memcpy(out, x, kBlock * sizeof(float));
    return;
  }
  uint16_t halves[kBlock];
  for (int i = 0; i < kBlock; ++i) {
    halves[i] = dtype == DType::kBF16 ? f32_to_bf16(x[i]) : f32_to_f16(x[i]);
  }
  std::memcpy(out, halves, sizeof halves);
}

using DecodeBlock = void (*)(const std::byte*, float*);

void convert_blocks(const std::byte* blocks, int64_t n, uint64_t block_bytes, DType dtype,
                    std::byte* out, DecodeBlock decode) {
  float x[kBlock];
  for (int64_t done = 0; done < n; done += kBlock) {
    decode(blocks, x);
    store(x, dtype, out);
    blocks += block_bytes;
    out += kBlock * dtype_bytes(dtype);
  }
}

}  // namespace

DType gguf_row_dtype(GgmlType type, DType quants) {
  switch (type) {
    case GgmlType::kF32:
      return DType::kF32;
    case GgmlType::kF16:
      return DType::kF16;
    case GgmlType::kBF16:
      return DType::kBF16;
    case GgmlType::kQ4_0:
    case GgmlType::kQ4_1:
    case GgmlType::kQ8_0:
      return quants;
  }
  return quants;
}

void gguf_convert(GgmlType type, const std::byte* blocks, int64_t n, DType dtype, void* out) {
  auto* to = static_cast<std::byte*>(out);
  switch (type) {
    case GgmlType::kF32:
    case GgmlType::kF16:
    case GgmlType::kBF16:
      std::memcpy(to, blocks, static_cast<size_t>(n * dtype_bytes(dtype)));
      return;
    case GgmlType::kQ4_0:
      convert_blocks(blocks, n, 18, dtype, to, decode_q4_0);
      return;
    case GgmlType::kQ4_1:
      convert_blocks(blocks, n, 20, dtype, to, decode_q4_1);
      return;
    case GgmlType::kQ8_0:
      convert_blocks(blocks, n, 34, dtype, to, decode_q8_0);
      return;
  }
}

}  // namespace triptych
