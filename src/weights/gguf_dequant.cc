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

template <typename Decode>
void convert_blocks(const std::byte* blocks, int64_t n, uint64_t block_bytes, void* out,
                    Decode decode) {
  auto* to = static_cast<uint16_t*>(out);
  float x[kBlock];
  for (int64_t done = 0; done < n; done += kBlock, blocks += block_bytes, to += kBlock) {
    decode(blocks, x);
    for (int i = 0; i < kBlock; ++i) to[i] = f32_to_bf16(x[i]);
  }
}

}  // namespace

DType gguf_row_dtype(GgmlType type) {
  switch (type) {
    case GgmlType::kF32:
      return DType::kF32;
    case GgmlType::kF16:
      return DType::kF16;
    case GgmlType::kBF16:
    case GgmlType::kQ4_0:
    case GgmlType::kQ4_1:
    case GgmlType::kQ8_0:
      return DType::kBF16;
  }
  return DType::kBF16;
}

void gguf_convert(GgmlType type, const std::byte* blocks, int64_t n, void* out) {
  switch (type) {
    case GgmlType::kF32:
    case GgmlType::kF16:
    case GgmlType::kBF16:
      std::memcpy(out, blocks, static_cast<size_t>(n * dtype_bytes(gguf_row_dtype(type))));
      return;
    case GgmlType::kQ4_0:
      convert_blocks(blocks, n, 18, out, decode_q4_0);
      return;
    case GgmlType::kQ4_1:
      convert_blocks(blocks, n, 20, out, decode_q4_1);
      return;
    case GgmlType::kQ8_0:
      convert_blocks(blocks, n, 34, out, decode_q8_0);
      return;
  }
}

}  // namespace triptych
