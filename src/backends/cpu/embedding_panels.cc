#include "backends/cpu/embedding_panels.h"

#include "base/checked.h"

namespace triptych {
namespace {

template <typename T, typename Widen>
void copy_row(const T* panel, int64_t lane, int64_t d, float* out, Widen widen) {
  for (int64_t i = 0; i < d; ++i) out[i] = widen(panel[i * kPanelRows + lane]);
}

void embed_one(const PackedWeight& table, int64_t id, float* out) {
  const int64_t panel = id / kPanelRows;
  const int64_t lane = id % kPanelRows;
  const std::byte* data = table.data + panel * static_cast<int64_t>(packed_weight_bytes(
                                                   table.dtype, kPanelRows, table.k));
  if (table.dtype == DType::kF32) {
    copy_row(reinterpret_cast<const float*>(data), lane, table.k, out, [](float v) { return v; });
  } else if (table.dtype == DType::kF16) {
    copy_row(reinterpret_cast<const uint16_t*>(data), lane, table.k, out, f16_to_f32);
  } else {
    const auto* pairs = reinterpret_cast<const uint16_t*>(data) + 2 * lane;
    for (int64_t i = 0; i < table.k; ++i) {
      out[i] = bf16_to_f32(pairs[i / 2 * 2 * kPanelRows + i % 2]);
    }
  }
}

}  // namespace

void embedding_panels(const EmbeddingArgs& args, const Stream& stream) {
  stream.pool->parallel_for(args.n, 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      embed_one(args.table, args.ids[i], args.out + i * args.ldo);
    }
  });
}

}  // namespace triptych
