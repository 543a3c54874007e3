// Writing keys and values into their pages: rounding a row at a time, then copies of two or four
// bytes for the transposed keys.
#include <algorithm>
#include <cstring>

#include "backends/cpu/cpu_ops.h"
#include "backends/cpu/hwy_levels.h"
#include "backends/cpu/page_slots.h"
#include "ops/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kv_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace triptych {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// n floats to bf16, as f32_to_bf16 rounds.
void narrow_bf16(const float* src, uint16_t* dst, int64_t n) {
  const hn::ScalableTag<uint32_t> tag;
  const hn::RebindToFloat<decltype(tag)> float_tag;
  const hn::RebindToSigned<decltype(tag)> signed_tag;
  const hn::Rebind<uint16_t, decltype(tag)> half_tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto value = hn::LoadU(float_tag, src + i);
    const auto bits = hn::BitCast(tag, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(tag, 1u));
    const auto rounded = hn::Add(hn::Add(bits, hn::Set(tag, 0x7fffu)), odd);
    const auto quiet = hn::Or(bits, hn::Set(tag, 0x400000u));
    const auto is_nan = hn::RebindMask(tag, hn::Ne(value, value));
    const auto high = hn::ShiftRight<16>(hn::IfThenElse(is_nan, quiet, rounded));
    hn::StoreU(hn::DemoteTo(half_tag, hn::BitCast(signed_tag, high)), half_tag, dst + i);
  }
  for (; i < n; ++i) dst[i] = f32_to_bf16(src[i]);
}

/// n floats to f16, to nearest even; overflow gives infinity.
void narrow_f16(const float* src, uint16_t* dst, int64_t n) {
  int64_t i = 0;
#if HWY_MAX_BYTES >= 32  // F16C; Highway's own emulation below it does not round to nearest
  const hn::ScalableTag<float> tag;
  const hn::Rebind<hwy::float16_t, decltype(tag)> half_tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::DemoteTo(half_tag, hn::LoadU(tag, src + i)), half_tag,
               reinterpret_cast<hwy::float16_t*>(dst + i));
  }
#endif
  for (; i < n; ++i) dst[i] = f32_to_f16(src[i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace triptych
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triptych {
namespace {

void copy_f32(const float* src, float* dst, int64_t n) {
  std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
}

/// Tokens [row, row + n) of the batch into slots [slot, slot + n) of one page.
struct PageRun {
  int64_t row;
  int64_t slot;
  int64_t n;
  std::byte* page;
};

template <typename Element>
using NarrowFn = void (*)(const float* src, Element* dst, int64_t n);

template <typename Element>
void write_run(const KvWriteArgs& a, const PageRun& run, NarrowFn<Element> narrow) {
  const int64_t d_count = a.cache.head_dim;
  Element key[kMaxHeadDim];
  for (int64_t h = 0; h < a.cache.n_kv_heads; ++h) {
    auto* k_page = reinterpret_cast<Element*>(run.page) + h * d_count * kPageTokens + run.slot;
    auto* v_page = reinterpret_cast<Element*>(run.page + a.cache.v_offset()) +
                   (h * kPageTokens + run.slot) * d_count;
    for (int64_t t = 0; t < run.n; ++t) {
      narrow(a.k + (run.row + t) * a.ldk + h * d_count, key, d_count);
      for (int64_t d = 0; d < d_count; ++d) k_page[d * kPageTokens + t] = key[d];
      narrow(a.v + (run.row + t) * a.ldv + h * d_count, v_page + t * d_count, d_count);
    }
  }
}

template <typename Element>
void write_sequence(const KvWriteArgs& a, const SequenceRows& s, const Stream& stream,
                    NarrowFn<Element> narrow) {
  const int64_t first = s.kv_len - s.n_rows;
  PageCursor cursor(s.page_begin);
  const int64_t first_page = cursor.page_of(first);
  const int64_t n_pages = cursor.page_of(s.kv_len - 1) + 1 - first_page;
  // Eight pages a thread at least: a decode step writes one token and must not wake the pool.
  stream.pool->parallel_for(n_pages, 8, [&](int64_t begin, int64_t end) {
    for (int64_t p = first_page + begin; p < first_page + end; ++p) {
      const int64_t page_begin = s.page_begin != nullptr ? s.page_begin[p] : p * kPageTokens;
      const int64_t from = std::max(first, page_begin);
      const int64_t to = std::min(s.kv_len, page_begin + filled_slots(s, p));
      const PageRun run{.row = s.row + from - first,
                        .slot = from - page_begin,
                        .n = to - from,
                        .page = a.cache.base + s.pages[p] * a.cache.page_stride};
      write_run<Element>(a, run, narrow);
    }
  });
}

template <NarrowFn<uint16_t> ToBF16, NarrowFn<uint16_t> ToF16>
void kv_write(const KvWriteArgs& a, const Stream& stream) {
  for (int64_t i = 0; i < a.n_sequences; ++i) {
    const SequenceRows& s = a.sequences[i];
    if (s.n_rows <= 0) continue;
    switch (a.cache.dtype) {
      case DType::kBF16:
        write_sequence<uint16_t>(a, s, stream, ToBF16);
        break;
      case DType::kF16:
        write_sequence<uint16_t>(a, s, stream, ToF16);
        break;
      default:
        write_sequence<float>(a, s, stream, copy_f32);
        break;
    }
  }
}

}  // namespace

void fill_cpu_kv(KernelTable& table, CpuIsa isa) {
  if (isa >= CpuIsa::kAvx512) {
    table.kv_write = kv_write<N_AVX3::narrow_bf16, N_AVX3::narrow_f16>;
  } else if (isa >= CpuIsa::kAvx2) {
    table.kv_write = kv_write<N_AVX2::narrow_bf16, N_AVX2::narrow_f16>;
  } else {
    table.kv_write = kv_write<N_SSSE3::narrow_bf16, N_SSSE3::narrow_f16>;
  }
}

}  // namespace triptych
#endif  // HWY_ONCE
