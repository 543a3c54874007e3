// Attention of a tile of query rows over blocks of 64 keys, with online softmax (Dao et al.,
// "FlashAttention", 2022). Compiled once a Highway target; shared by paged and segment attention.
//
// What a row's result depends on is fixed here: slots in blocks of 64 from the start of its
// sequence or segment, in order, the same additions in the same order whatever rows share the
// tile. So a row is bit for bit the same alone, in a batch, in any chunk and on any number of
// threads. Keys a row must not see are replaced before the softmax and their values never read.
#if defined(TRIPTYCH_BACKENDS_CPU_ATTENTION_CORE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIPTYCH_BACKENDS_CPU_ATTENTION_CORE_INL_H_
#undef TRIPTYCH_BACKENDS_CPU_ATTENTION_CORE_INL_H_
#else
#define TRIPTYCH_BACKENDS_CPU_ATTENTION_CORE_INL_H_
#endif

#include "backends/cpu/attention_softmax-inl.h"
#include "backends/cpu/attention_tile.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace triptych {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Register blocking: rows of queries, and vectors of keys (or of value columns) a row. 24
/// accumulators of 32 registers on AVX-512, 12 of 16 on AVX2, 8 of 16 below.
constexpr int kRegRows = kLanes >= 8 ? 6 : 2;
constexpr int kRegVecs = kLanes == 8 ? 2 : 4;
constexpr int kVecsPerPage = static_cast<int>(kPageTokens) / kLanes;
constexpr int kPagesAtOnce = kRegVecs > kVecsPerPage ? kRegVecs / kVecsPerPage : 1;

HWY_INLINE F32Vec load_f32(const float* p) { return hn::LoadU(F32Tag(), p); }
HWY_INLINE F32Vec load_f32(const hwy::bfloat16_t* p) {
  return hn::PromoteTo(F32Tag(), hn::LoadU(hn::Rebind<hwy::bfloat16_t, F32Tag>(), p));
}

/// Scores of R rows against P pages: s[r * 64 + key] = q_r . k_key. q is packed [d][R]. Meanwhile
/// the values of these pages are fetched: there is one load for a few multiply-adds, and they come
/// late.
template <int R, int P, typename T>
HWY_NOINLINE void score_pages(const float* q, int64_t head_dim, const T* const* pages,
                              const T* const* values, float* s) {
  const F32Tag tag;
  constexpr int kVecs = P * kVecsPerPage;
  F32Vec acc[R][kVecs];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) acc[r][v] = hn::Zero(tag);
  }
  const T* page[P];
  const T* value[P];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    page[p] = pages[p];
    value[p] = values[p];
  }
  for (int64_t d = 0; d < head_dim; ++d, q += R) {
    F32Vec keys[kVecs];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) hwy::Prefetch(value[p] + d * kPageTokens);
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) {
      keys[v] = load_f32(page[v / kVecsPerPage] + d * kPageTokens + (v % kVecsPerPage) * kLanes);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const F32Vec qr = hn::Set(tag, q[r]);
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) acc[r][v] = hn::MulAdd(qr, keys[v], acc[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) hn::StoreU(acc[r][v], tag, s + r * kBlockKeys + v * kLanes);
  }
}

/// Scores of the pages of slots [keys.from, keys.to).
template <int R, typename T>
HWY_INLINE void score_block(const QueryTile& tile, const float* q, const KeyBlock<T>& block,
                            KeyRange keys, float* s) {
  const int64_t n_pages = (keys.to + kPageTokens - 1) / kPageTokens;
  int64_t p = keys.from / kPageTokens;
  if constexpr (kPagesAtOnce > 1) {
    for (; p + kPagesAtOnce <= n_pages; p += kPagesAtOnce) {
      score_pages<R, kPagesAtOnce>(q, tile.head_dim, block.k + p, block.v + p, s + p * kPageTokens);
    }
  }
  for (; p < n_pages; ++p) {
    score_pages<R, 1>(q, tile.head_dim, block.k + p, block.v + p, s + p * kPageTokens);
  }
}

/// out[r] = out[r] * decay[r] + sum of weights w[r][j] times value rows j of `keys`, for C vectors
/// of columns from `column`. Slots that hold no key are passed over.
template <int R, int C, typename T>
HWY_NOINLINE void add_values(const KeyBlock<T>& block, KeyRange keys, const float* w,
                             const float* decay, int64_t column, float* out, int64_t out_stride) {
  const F32Tag tag;
  F32Vec acc[R][C];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const F32Vec factor = hn::Set(tag, decay[r]);
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      acc[r][c] = hn::Mul(hn::LoadU(tag, out + r * out_stride + column + c * kLanes), factor);
    }
  }
  const int64_t stride = block.v_stride;
  int64_t j = keys.from;
  for (int64_t page = j / kPageTokens; j < keys.to; j = ++page * kPageTokens) {
    const T* v = block.v[page] + (j - page * kPageTokens) * stride + column;
    const int64_t page_end = block.page_end[page];
    const int64_t stop = page_end < keys.to ? page_end : keys.to;
    for (; j < stop; ++j, v += stride) {
      F32Vec values[C];
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) values[c] = load_f32(v + c * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const F32Vec wr = hn::Set(tag, w[r * kBlockKeys + j]);
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) acc[r][c] = hn::MulAdd(wr, values[c], acc[r][c]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      hn::StoreU(acc[r][c], tag, out + r * out_stride + column + c * kLanes);
    }
  }
}

/// All columns: chunks of at most kRegVecs vectors, of sizes that differ by one at most.
template <int R, typename T>
HWY_INLINE void add_all_values(const QueryTile& tile, const KeyBlock<T>& block, KeyRange keys,
                               const float* w, const float* decay, float* out) {
  const int64_t n_vecs = tile.padded_dim / kLanes;
  const int64_t n_chunks = (n_vecs + kRegVecs - 1) / kRegVecs;
  for (int64_t i = 0; i < n_chunks; ++i) {
    const int64_t first = n_vecs * i / n_chunks;
    const int64_t n = n_vecs * (i + 1) / n_chunks - first;
    const int64_t column = first * kLanes;
    const int64_t stride = tile.padded_dim;
    switch (n) {
      case 1:
        add_values<R, 1>(block, keys, w, decay, column, out, stride);
        break;
      case 2:
        add_values<R, 2>(block, keys, w, decay, column, out, stride);
        break;
#if HWY_MAX_BYTES != 32
      case 3:
        add_values<R, 3>(block, keys, w, decay, column, out, stride);
        break;
      default:
        add_values<R, 4>(block, keys, w, decay, column, out, stride);
        break;
#endif
    }
  }
}

/// Values into rows [0, R) of `out`, keys in ascending order for each row. Keys that all rows see
/// go through the register block; the edges row by row, so that no row multiplies a value that it
/// must not see (0 times infinity is not 0).
template <int R, typename T>
HWY_INLINE void add_visible_values(const QueryTile& tile, const KeyBlock<T>& block,
                                   const KeyRange* visible, const float* s, float* decay,
                                   float* out) {
  KeyRange shared = visible[0];
  for (int r = 1; r < R; ++r) {
    shared.from = visible[r].from > shared.from ? visible[r].from : shared.from;
    shared.to = visible[r].to < shared.to ? visible[r].to : shared.to;
  }
  const auto add_one_row = [&](int r, KeyRange keys) {
    if (keys.empty()) return;
    add_all_values<1>(tile, block, keys, s + r * kBlockKeys, decay + r, out + r * tile.padded_dim);
    decay[r] = 1;
  };
  if (shared.empty()) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) add_one_row(r, visible[r]);
    return;
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) add_one_row(r, {visible[r].from, shared.from});
  add_all_values<R>(tile, block, shared, s, decay, out);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) decay[r] = 1;
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) add_one_row(r, {shared.to, visible[r].to});
}

/// Folds one block of keys into rows [row, row + R) of a tile. visible[r]: keys of this block that
/// row r sees; a row that sees none is left untouched.
template <int R, typename T>
void attend_rows(const QueryTile& tile, int64_t row, const KeyBlock<T>& block,
                 const KeyRange* visible) {
  KeyRange any{kBlockKeys, 0};
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    if (visible[r].empty()) continue;
    any.from = visible[r].from < any.from ? visible[r].from : any.from;
    any.to = visible[r].to > any.to ? visible[r].to : any.to;
  }
  if (any.empty()) return;
  alignas(64) float s[R * kBlockKeys];
  score_block<R>(tile, tile.q + row * tile.head_dim, block, any, s);
  if (block.has_empty_slots) hide_empty_slots<R>(block, s);

  alignas(64) float decay[kLanes] = {};
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    if (visible[r].empty()) continue;
    const float old = tile.max[row + r];
    tile.max[row + r] = row_max(s + r * kBlockKeys, visible[r], old);
    decay[r] = old - tile.max[row + r];
  }
  const F32Tag tag;
  hn::Store(exp2_nonpositive(hn::Load(tag, decay)), tag, decay);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    if (visible[r].empty()) continue;
    const float sum = row_weights(s + r * kBlockKeys, visible[r], tile.max[row + r]);
    tile.sum[row + r] = tile.sum[row + r] * decay[r] + sum;
  }
  add_visible_values<R>(tile, block, visible, s, decay, tile.out + row * tile.padded_dim);
}

template <typename T>
using AttendFn = void (*)(const QueryTile&, int64_t, const KeyBlock<T>&, const KeyRange*);

template <typename T>
HWY_INLINE AttendFn<T> attend_function(int64_t n_rows) {
#if HWY_MAX_BYTES >= 32
  static constexpr AttendFn<T> kTable[] = {attend_rows<1, T>, attend_rows<2, T>, attend_rows<3, T>,
                                           attend_rows<4, T>, attend_rows<5, T>, attend_rows<6, T>};
#else
  static constexpr AttendFn<T> kTable[] = {attend_rows<1, T>, attend_rows<2, T>};
#endif
  return kTable[n_rows - 1];
}

/// Row groups of a tile: as few as kRegRows allows, of sizes that differ by one at most.
struct RowGroups {
  int64_t n_rows;
  int64_t count;

  explicit RowGroups(int64_t rows) : n_rows(rows), count((rows + kRegRows - 1) / kRegRows) {}
  int64_t begin(int64_t group) const { return n_rows * group / count; }
};

/// What queries are multiplied by, so that scores come out in units of log2(e).
inline float query_factor(float scale) {
  return static_cast<float>(1.4426950408889634 * static_cast<double>(scale));
}

/// Packs row `src` of a tile as row `row`, scaled; groups lie one after another as [d][rows].
HWY_INLINE void pack_query(const QueryTile& tile, const RowGroups& groups, int64_t row,
                           const float* src, float factor) {
  int64_t group = row * groups.count / groups.n_rows;
  while (groups.begin(group + 1) <= row) ++group;
  const int64_t begin = groups.begin(group);
  const int64_t n = groups.begin(group + 1) - begin;
  float* dst = tile.q + begin * tile.head_dim + (row - begin);
  for (int64_t d = 0; d < tile.head_dim; ++d) dst[d * n] = src[d] * factor;
}

inline void start_tile(const QueryTile& tile) {
  for (int64_t r = 0; r < tile.n_rows; ++r) {
    tile.max[r] = -HUGE_VALF;
    tile.sum[r] = 0;
  }
  for (int64_t i = 0; i < tile.n_rows * tile.padded_dim; ++i) tile.out[i] = 0;
}

/// visible[tile.n_rows] as attend_rows takes it.
template <typename T>
inline void attend_block(const QueryTile& tile, const KeyBlock<T>& block, const KeyRange* visible) {
  const RowGroups groups(tile.n_rows);
  for (int64_t g = 0; g < groups.count; ++g) {
    const int64_t row = groups.begin(g);
    attend_function<T>(groups.begin(g + 1) - row)(tile, row, block, visible + row);
  }
}

/// dst = row `row` of the tile, divided by the sum of its weights.
inline void finish_row(const QueryTile& tile, int64_t row, float* dst) {
  const float* src = tile.out + row * tile.padded_dim;
  const float factor = 1.0f / tile.sum[row];
  for (int64_t d = 0; d < tile.head_dim; ++d) dst[d] = src[d] * factor;
}

}  // namespace HWY_NAMESPACE
}  // namespace triptych
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
