// Causal attention over KV pages. Compiled once a Highway target; see attention_core-inl.h.
#if defined(TRIPTYCH_BACKENDS_CPU_ATTENTION_PAGED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIPTYCH_BACKENDS_CPU_ATTENTION_PAGED_INL_H_
#undef TRIPTYCH_BACKENDS_CPU_ATTENTION_PAGED_INL_H_
#else
#define TRIPTYCH_BACKENDS_CPU_ATTENTION_PAGED_INL_H_
#endif

#include "backends/cpu/attention_core-inl.h"
#include "backends/cpu/attention_widen-inl.h"
#include "backends/cpu/page_slots.h"
#include "backends/cpu/paged_plan.h"

HWY_BEFORE_NAMESPACE();
namespace triptych {
namespace HWY_NAMESPACE {

/// Row groups up to which each widens a bf16 block as it reads it: 64 slots of a head of 64 take
/// half of an L1 cache, a widened copy all of it.
constexpr int64_t kInPlaceGroups = kRegRows > 2 ? 8 : 2;

/// Keys and values of a block, widened to f32.
struct KeyBlockMemory {
  alignas(64) float k[kBlockKeys * kMaxHeadDim];
  alignas(64) float v[kBlockKeys * kMaxHeadDim];
};

/// The pages of a sequence, as one KV head sees them.
struct HeadPages {
  const KvLayer& cache;
  const SequenceRows& sequence;
  int64_t kv_head;

  /// Its part of page `index`: K, V after it.
  struct Page {
    const std::byte* k;
    const std::byte* v;
  };
  HWY_INLINE Page operator[](int64_t index) const {
    const std::byte* page = cache.base + sequence.pages[index] * cache.page_stride;
    const int64_t offset = kv_head * cache.head_dim * kPageTokens * dtype_bytes(cache.dtype);
    return {page + offset, page + cache.v_offset() + offset};
  }
};

/// Calls `use(p, index, next)` for the block's pages that hold slots of `needed`, with the page's
/// index in the sequence and that of the page to fetch meanwhile; notes which slots hold keys.
template <typename Use>
HWY_INLINE void for_pages(const SequenceRows& s, int64_t block, KeyRange needed, BlockSlots& slots,
                          Use&& use) {
  const int64_t end_page = (needed.to + kPageTokens - 1) / kPageTokens;
  const bool partly_filled = s.page_begin != nullptr;
  for (int64_t p = 0; p < kBlockPages; ++p) {
    const int64_t index = block * kBlockPages + p;
    if (index < needed.from / kPageTokens || index >= end_page) continue;
    if (partly_filled) {
      const int64_t n = filled_slots(s, index);
      slots.page_end[p] = p * kPageTokens + n;
      slots.has_empty_slots |= n < kPageTokens;
    }
    use(p, index, index + kBlockPages < end_page ? index + kBlockPages : index);
  }
}

/// A block whose keys and values are read where they lie.
template <typename T>
inline KeyBlock<T> block_in_place(const HeadPages& pages, int64_t block, KeyRange needed) {
  KeyBlock<T> out;
  out.v_stride = pages.cache.head_dim;
  for_pages(pages.sequence, block, needed, out, [&](int64_t p, int64_t index, int64_t) {
    const HeadPages::Page page = pages[index];
    out.k[p] = reinterpret_cast<const T*>(page.k);
    out.v[p] = reinterpret_cast<const T*>(page.v);
  });
  return out;
}

/// A block widened to f32 once for all rows of a tile.
inline KeyBlock<float> widened_block(const HeadPages& pages, int64_t block, KeyRange needed,
                                     KeyBlockMemory& memory) {
  const int64_t d = pages.cache.head_dim;
  const int64_t padded_dim = (d + 15) / 16 * 16;
  KeyBlock<float> out;
  out.v_stride = padded_dim;
  for_pages(pages.sequence, block, needed, out, [&](int64_t p, int64_t index, int64_t next_index) {
    const HeadPages::Page page = pages[index];
    const HeadPages::Page next = pages[next_index];
    float* k_out = memory.k + p * kPageTokens * d;
    float* v_out = memory.v + p * kPageTokens * padded_dim;
    widen(pages.cache.dtype, page.k, next.k, k_out, d * kPageTokens);
    widen_values(pages.cache, page.v, next.v, v_out, padded_dim);
    out.k[p] = k_out;
    out.v[p] = v_out;
  });
  return out;
}

/// seen[r] = slots that row r of the item's part of sequence `s` sees, as a range of all of its.
inline void find_seen(const PagedAttentionArgs& a, const PagedItem& item, const SequenceRows& s,
                      KeyRange* seen) {
  PageCursor first(s.page_begin);
  PageCursor last(s.page_begin);
  for (int64_t t = item.first; t < item.end; ++t) {
    const int64_t position = s.kv_len - s.n_rows + t;
    const int64_t from = a.window > 0 && position >= a.window ? position + 1 - a.window : 0;
    const KeyRange slots{first.slot_of(from), last.slot_of(position) + 1};
    for (int64_t h = 0; h < item.n_heads; ++h) *seen++ = slots;
  }
}

inline void pack_queries(const PagedAttentionArgs& a, const PagedItem& item, const SequenceRows& s,
                         const QueryTile& tile, int64_t first_row) {
  const RowGroups groups(tile.n_rows);
  const float factor = query_factor(a.scale);
  for (int64_t r = 0; r < item.rows_of_sequence(); ++r) {
    const int64_t row = s.row + item.first + r / item.n_heads;
    const int64_t head = item.first_head + r % item.n_heads;
    pack_query(tile, groups, first_row + r, a.q + row * a.ldq + head * tile.head_dim, factor);
  }
}

inline KeyRange common_part(KeyRange a, KeyRange b) {
  return {a.from > b.from ? a.from : b.from, a.to < b.to ? a.to : b.to};
}

inline KeyRange within_block(KeyRange keys, int64_t block) {
  const int64_t begin = block * kBlockKeys;
  const KeyRange part = common_part(keys, {begin, begin + kBlockKeys});
  return {part.from - begin, part.to - begin};
}

/// Folds those of the blocks' slots [blocks.from, blocks.to) that rows see into a tile of packed
/// queries. seen[tile.n_rows] as find_seen gives it.
inline void attend_blocks(const HeadPages& pages, const QueryTile& tile, const KeyRange* seen,
                          KeyRange blocks) {
  KeyBlockMemory keys;
  KeyRange visible[kTileRows];
  KeyRange needed = seen[0];
  for (int64_t r = 1; r < tile.n_rows; ++r) {
    needed.from = seen[r].from < needed.from ? seen[r].from : needed.from;
    needed.to = seen[r].to > needed.to ? seen[r].to : needed.to;
  }
  needed = common_part(needed, blocks);
  const DType dtype = pages.cache.dtype;
  const bool whole_vectors = tile.padded_dim == tile.head_dim;
  const bool few_groups = RowGroups(tile.n_rows).count <= kInPlaceGroups;
  for (int64_t block = needed.from / kBlockKeys; block * kBlockKeys < needed.to; ++block) {
    for (int64_t r = 0; r < tile.n_rows; ++r) visible[r] = within_block(seen[r], block);
    if (whole_vectors && dtype == DType::kF32) {
      attend_block(tile, block_in_place<float>(pages, block, needed), visible);
    } else if (whole_vectors && dtype == DType::kBF16 && few_groups) {
      attend_block(tile, block_in_place<hwy::bfloat16_t>(pages, block, needed), visible);
    } else {
      attend_block(tile, widened_block(pages, block, needed, keys), visible);
    }
  }
}

/// The blocks that all sequences of the run begin with are read once for all of their rows, the
/// others sequence by sequence. Each row meets its blocks in order either way.
inline void attend_item(const PagedAttentionArgs& a, const PagedItem& item) {
  QueryTileMemory memory;
  KeyRange seen[kTileRows];
  const int64_t n_rows = item.rows_of_sequence();
  const QueryTile tile = memory.tile(item.run.n * n_rows, a.cache.head_dim);
  start_tile(tile);
  const KeyRange shared{0, item.run.shared_blocks * kBlockKeys};
  for (int64_t i = 0; i < item.run.n; ++i) {
    find_seen(a, item, item.run.first[i], seen + i * n_rows);
    if (!shared.empty()) pack_queries(a, item, item.run.first[i], tile, i * n_rows);
  }
  if (!shared.empty()) attend_blocks({a.cache, *item.run.first, item.kv_head}, tile, seen, shared);
  for (int64_t i = 0; i < item.run.n; ++i) {
    const SequenceRows& s = item.run.first[i];
    const QueryTile own = tile.rows(i * n_rows, n_rows);
    pack_queries(a, item, s, own, 0);
    attend_blocks({a.cache, s, item.kv_head}, own, seen + i * n_rows, {shared.to, INT64_MAX});
    for (int64_t r = 0; r < n_rows; ++r) {
      const int64_t row = s.row + item.first + r / item.n_heads;
      const int64_t head = item.first_head + r % item.n_heads;
      finish_row(own, r, a.out + row * a.ldo + head * own.head_dim);
    }
  }
}

inline void paged_attention(const PagedAttentionArgs& a, const Stream& stream) {
  const PagedPlan plan = plan_items(a, stream.pool->size());
  stream.pool->parallel_dynamic(plan.n_items, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) attend_item(a, item_at(a, plan, i));
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace triptych
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
