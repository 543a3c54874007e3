// Row copies. Memory-bound, so one version serves all levels.
#include <algorithm>
#include <cstring>

#include "backends/cpu/cpu_ops.h"
#include "ops/rows.h"

namespace triptych {
namespace {

constexpr int64_t kFloatsPerThread = 16384;

void gather_rows(const GatherRowsArgs& a, const Stream& stream) {
  const int64_t grain = std::max<int64_t>(1, kFloatsPerThread / std::max<int64_t>(1, a.d));
  stream.pool->parallel_for(a.n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = a.src_index != nullptr ? a.src_index[i] : i;
      const int64_t to = a.dst_index != nullptr ? a.dst_index[i] : i;
      std::memcpy(a.dst + to * a.ld_dst, a.src + from * a.ld_src,
                  static_cast<size_t>(a.d) * sizeof(float));
    }
  });
}

void patchify_row(const PatchifyArgs& a, int64_t patch_y) {
  const int64_t p = a.patch;
  const int64_t across = a.width / p;
  float* out = a.out + patch_y * across * a.channels * p * p;
  for (int64_t patch_x = 0; patch_x < across; ++patch_x) {
    for (int64_t c = 0; c < a.channels; ++c) {
      for (int64_t y = 0; y < p; ++y, out += p) {
        const float* src = a.pixels + (c * a.height + patch_y * p + y) * a.width + patch_x * p;
        std::memcpy(out, src, static_cast<size_t>(p) * sizeof(float));
      }
    }
  }
}

void patchify(const PatchifyArgs& a, const Stream& stream) {
  const int64_t row_floats = std::max<int64_t>(1, a.channels * a.patch * a.width);
  stream.pool->parallel_for(a.height / a.patch, std::max<int64_t>(1, kFloatsPerThread / row_floats),
                            [&](int64_t begin, int64_t end) {
                              for (int64_t y = begin; y < end; ++y) patchify_row(a, y);
                            });
}

}  // namespace

void fill_cpu_rows(KernelTable& table) {
  table.gather_rows = gather_rows;
  table.patchify = patchify;
}

}  // namespace triptych
