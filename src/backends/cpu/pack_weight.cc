#include "backends/cpu/pack_weight.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"

namespace triptych {
namespace {

/// The rows of one call that fall into one panel.
struct PanelRows {
  int64_t first_source;  ///< source row
  int64_t panel;
  int64_t first_lane;
  int64_t n;
};

/// `lane_bytes` at a time (a pair of bf16, else one element) go from each row to its lane.
template <typename T>
void pack_panel(const PackWeightArgs& args, const PanelRows& rows, int64_t per_lane) {
  constexpr int64_t kBlock = 16;  // lanes of one cache line of a source row
  const int64_t k = args.dst.k;
  const int64_t whole = k / per_lane;
  const int64_t depth = ceil_div(k, per_lane);
  const int64_t row_bytes = k * static_cast<int64_t>(sizeof(T)) / per_lane;
  const auto* source = static_cast<const std::byte*>(args.src) + rows.first_source * row_bytes;
  auto* panel = reinterpret_cast<T*>(args.dst.data) + rows.panel * depth * kPanelRows;
  for (int64_t k0 = 0; k0 < whole; k0 += kBlock) {
    const int64_t k1 = std::min(whole, k0 + kBlock);
    for (int64_t r = 0; r < rows.n; ++r) {
      const std::byte* in = source + r * row_bytes;
      T* lane = panel + rows.first_lane + r;
      for (int64_t i = k0; i < k1; ++i) {
        std::memcpy(&lane[i * kPanelRows], in + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
      }
    }
  }
  if (depth == whole) return;
  for (int64_t r = 0; r < rows.n; ++r) {  // the odd bf16 at the end, its partner zero
    uint16_t odd = 0;
    std::memcpy(&odd, source + r * row_bytes + (k - 1) * 2, sizeof(odd));
    panel[whole * kPanelRows + rows.first_lane + r] = static_cast<T>(odd);
  }
}

/// Zeros in the lanes of the last panel that no row of the weight fills.
template <typename T>
void clear_missing_rows(const PackedWeight& dst, int64_t depth) {
  const int64_t used = dst.n % kPanelRows;
  if (used == 0) return;
  auto* panel = reinterpret_cast<T*>(dst.data) + dst.n / kPanelRows * depth * kPanelRows;
  for (int64_t i = 0; i < depth; ++i) {
    std::fill(panel + i * kPanelRows + used, panel + (i + 1) * kPanelRows, T{0});
  }
}

int64_t packed_row(const PackWeightArgs& args, int64_t r) {
  if (args.panel_stride == 1) return args.first_row + r;
  return args.first_row + r / kPanelRows * kPanelRows * args.panel_stride + r % kPanelRows;
}

template <typename T>
void pack_rows(const PackWeightArgs& args, const Stream& stream, int64_t per_lane) {
  const int64_t lead = args.first_row % kPanelRows;  // lanes before the first row, in its panel
  const int64_t n_panels = ceil_div(lead + args.n_rows, kPanelRows);
  stream.pool->parallel_for(n_panels, 4, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = std::max<int64_t>(0, p * kPanelRows - lead);
      const int64_t last = std::min(args.n_rows, (p + 1) * kPanelRows - lead);
      const int64_t row = packed_row(args, first);
      pack_panel<T>(args,
                    {.first_source = first,
                     .panel = row / kPanelRows,
                     .first_lane = row % kPanelRows,
                     .n = last - first},
                    per_lane);
    }
  });
  if (args.n_rows > 0 && packed_row(args, args.n_rows - 1) == args.dst.n - 1) {
    clear_missing_rows<T>(args.dst, ceil_div(args.dst.k, per_lane));
  }
}

}  // namespace

void pack_weight_panels(const PackWeightArgs& args, const Stream& stream) {
  switch (args.dst.dtype) {
    case DType::kBF16:
      pack_rows<uint32_t>(args, stream, 2);
      return;
    case DType::kF16:
      pack_rows<uint16_t>(args, stream, 1);
      return;
    default:
      pack_rows<uint32_t>(args, stream, 1);
      return;
  }
}

}  // namespace triptych
