// Writing keys and values into their pages. A few hundred kilobytes a step, so one scalar version
// serves all levels: its rounding is that of core/dtype.h everywhere.
#include <algorithm>
#include <cstring>

#include "backends/cpu/cpu_ops.h"
#include "ops/attention.h"

namespace triptych {
namespace {

struct F32Cache {
  using Element = float;
  static float convert(float v) { return v; }
};
struct BF16Cache {
  using Element = uint16_t;
  static uint16_t convert(float v) { return f32_to_bf16(v); }
};
struct F16Cache {
  using Element = uint16_t;
  static uint16_t convert(float v) { return f32_to_f16(v); }
};

/// Tokens [row, row + n) of the batch into slots [slot, slot + n) of one page.
struct PageRun {
  int64_t row;
  int64_t slot;
  int64_t n;
  std::byte* page;
};

template <typename Cache>
void write_run(const KvWriteArgs& a, const PageRun& run) {
  const int64_t d = a.cache.head_dim;
  const int64_t width = a.cache.n_kv_heads * d;
  auto* k_page = reinterpret_cast<typename Cache::Element*>(run.page);
  auto* v_page = reinterpret_cast<typename Cache::Element*>(run.page + a.cache.v_offset());
  for (int64_t i = 0; i < width; ++i) {  // head * head_dim + d: both the row's and K's outer index
    const float* src = a.k + run.row * a.ldk + i;
    for (int64_t t = 0; t < run.n; ++t) {
      k_page[i * kPageTokens + run.slot + t] = Cache::convert(src[t * a.ldk]);
    }
  }
  for (int64_t h = 0; h < a.cache.n_kv_heads; ++h) {
    for (int64_t t = 0; t < run.n; ++t) {
      const float* src = a.v + (run.row + t) * a.ldv + h * d;
      typename Cache::Element* dst = v_page + (h * kPageTokens + run.slot + t) * d;
      for (int64_t i = 0; i < d; ++i) dst[i] = Cache::convert(src[i]);
    }
  }
}

template <typename Cache>
void write_sequence(const KvWriteArgs& a, const SequenceRows& s, const Stream& stream) {
  const int64_t first = s.kv_len - s.n_rows;
  const int64_t first_page = first / kPageTokens;
  const int64_t n_pages = (s.kv_len + kPageTokens - 1) / kPageTokens - first_page;
  // Eight pages a thread at least: a decode step writes one token and must not wake the pool.
  stream.pool->parallel_for(n_pages, 8, [&](int64_t begin, int64_t end) {
    for (int64_t p = first_page + begin; p < first_page + end; ++p) {
      const int64_t from = std::max(first, p * kPageTokens);
      const int64_t to = std::min(s.kv_len, (p + 1) * kPageTokens);
      write_run<Cache>(a, {.row = s.row + from - first,
                           .slot = from - p * kPageTokens,
                           .n = to - from,
                           .page = a.cache.base + s.pages[p] * a.cache.page_stride});
    }
  });
}

template <typename Cache>
void write_all(const KvWriteArgs& a, const Stream& stream) {
  for (int64_t i = 0; i < a.n_sequences; ++i) {
    if (a.sequences[i].n_rows > 0) write_sequence<Cache>(a, a.sequences[i], stream);
  }
}

void kv_write(const KvWriteArgs& a, const Stream& stream) {
  switch (a.cache.dtype) {
    case DType::kBF16:
      return write_all<BF16Cache>(a, stream);
    case DType::kF16:
      return write_all<F16Cache>(a, stream);
    default:
      return write_all<F32Cache>(a, stream);
  }
}

}  // namespace

void fill_cpu_kv(KernelTable& table) { table.kv_write = kv_write; }

}  // namespace triptych
