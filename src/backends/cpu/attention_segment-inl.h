// Bidirectional attention within segments (vision and audio towers). Compiled once a Highway
// target; see attention_core-inl.h.
#if defined(TRIPTYCH_BACKENDS_CPU_ATTENTION_SEGMENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIPTYCH_BACKENDS_CPU_ATTENTION_SEGMENT_INL_H_
#undef TRIPTYCH_BACKENDS_CPU_ATTENTION_SEGMENT_INL_H_
#else
#define TRIPTYCH_BACKENDS_CPU_ATTENTION_SEGMENT_INL_H_
#endif

#include "backends/cpu/attention_core-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triptych {
namespace HWY_NAMESPACE {

/// Keys and values of one head of one segment in the layout of KV pages, f32: K as [page][d][16],
/// V as [row][padded_dim].
struct PackedHead {
  float* k;
  float* v;
  int64_t n_keys;
  int64_t head_dim;
  int64_t padded_dim;
};

inline void pack_head(const SegmentAttentionArgs& a, int64_t first_row, int64_t head,
                      const PackedHead& out) {
  const int64_t d_count = out.head_dim;
  for (int64_t row = 0; row < out.n_keys; ++row) {
    const float* k = a.k + (first_row + row) * a.ld + head * d_count;
    const float* v = a.v + (first_row + row) * a.ld + head * d_count;
    float* k_out = out.k + row / kPageTokens * kPageTokens * d_count + row % kPageTokens;
    for (int64_t d = 0; d < d_count; ++d) k_out[d * kPageTokens] = k[d];
    float* v_out = out.v + row * out.padded_dim;
    std::memcpy(v_out, v, static_cast<size_t>(d_count) * sizeof(float));
    for (int64_t d = d_count; d < out.padded_dim; ++d) v_out[d] = 0;
  }
}

inline KeyBlock<float> packed_block(const PackedHead& head, int64_t block) {
  KeyBlock<float> out;
  for (int64_t p = 0; p < kBlockPages; ++p) {
    const int64_t key = block * kBlockKeys + p * kPageTokens;
    const int64_t inside = key < head.n_keys ? key : 0;
    out.k[p] = head.k + inside * head.head_dim;
    out.v[p] = head.v + inside * head.padded_dim;
  }
  out.v_stride = head.padded_dim;
  return out;
}

/// Query rows [begin, end) of the batch, one head, over its packed keys.
inline void attend_segment_rows(const SegmentAttentionArgs& a, int64_t head,
                                const PackedHead& packed, int64_t begin, int64_t end) {
  QueryTileMemory memory;
  const int64_t column = head * a.head_dim;
  const float factor = query_factor(a.scale);
  const int64_t n_tiles = (end - begin + kTileRows - 1) / kTileRows;
  for (int64_t i = 0; i < n_tiles; ++i) {  // of even size: a tile of few rows is a slow one
    const int64_t first = begin + (end - begin) * i / n_tiles;
    const int64_t n_rows = begin + (end - begin) * (i + 1) / n_tiles - first;
    const QueryTile tile = memory.tile(n_rows, a.head_dim);
    const RowGroups groups(n_rows);
    start_tile(tile);
    for (int64_t r = 0; r < n_rows; ++r) {
      pack_query(tile, groups, r, a.q + (first + r) * a.ld + column, factor);
    }
    for (int64_t block = 0; block * kBlockKeys < packed.n_keys; ++block) {
      const int64_t left = packed.n_keys - block * kBlockKeys;
      const KeyRange all{0, left < kBlockKeys ? left : kBlockKeys};
      for (int64_t r = 0; r < n_rows; ++r) memory.visible[r] = all;
      attend_block(tile, packed_block(packed, block), memory.visible);
    }
    for (int64_t r = 0; r < n_rows; ++r) finish_row(tile, r, a.out + (first + r) * a.ldo + column);
  }
}

/// Work items are (segment, head, part of the query rows). A thread packs the head's keys into its
/// own scratch; a head is cut into parts only where there would be too few items for the threads.
inline void segment_attention(const SegmentAttentionArgs& a, const Stream& stream) {
  int64_t longest = 0;
  for (int64_t s = 0; s < a.n_segments; ++s) {
    const int64_t n = a.segment_starts[s + 1] - a.segment_starts[s];
    longest = n > longest ? n : longest;
  }
  if (longest == 0) return;
  const int64_t threads = stream.pool->size();
  const int64_t heads = a.n_segments * a.n_heads;
  const int64_t parts =
      heads < 4 * threads && heads % threads != 0 ? (4 * threads - 1) / heads + 1 : 1;
  const int64_t padded_dim = (a.head_dim + 15) / 16 * 16;
  const int64_t padded_rows = (longest + kPageTokens - 1) / kPageTokens * kPageTokens;
  const int64_t thread_floats = padded_rows * (a.head_dim + padded_dim);

  std::atomic<int64_t> next{0};
  stream.pool->run([&](int worker) {
    float* scratch = static_cast<float*>(a.scratch) + worker * thread_floats;
    for (;;) {
      const int64_t item = next.fetch_add(1, std::memory_order_relaxed);
      if (item >= heads * parts) return;
      const int64_t segment = item / (a.n_heads * parts);
      const int64_t head = item / parts % a.n_heads;
      const int64_t part = item % parts;
      const int64_t start = a.segment_starts[segment];
      const int64_t n = a.segment_starts[segment + 1] - start;
      const int64_t begin = start + n * part / parts;
      const int64_t end = start + n * (part + 1) / parts;
      if (begin == end) continue;
      const PackedHead packed{scratch, scratch + padded_rows * a.head_dim, n, a.head_dim,
                              padded_dim};
      pack_head(a, start, head, packed);
      attend_segment_rows(a, head, packed, begin, end);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace triptych
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
