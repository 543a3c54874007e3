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

HWY_BEFORE_NAMESPACE();
namespace triptych {
namespace HWY_NAMESPACE {

/// Keys and values of a block, widened to f32.
struct KeyBlockMemory {
  alignas(64) float k[kBlockKeys * kMaxHeadDim];
  alignas(64) float v[kBlockKeys * kMaxHeadDim];
};

/// Part of the work: tokens [first, end) of a sequence's new rows, and query heads
/// [first_head, first_head + n_heads) of one KV head, folded into the rows of a tile as
/// token * n_heads + head.
struct PagedItem {
  const SequenceRows* sequence;
  int64_t kv_head;
  int64_t first_head;
  int64_t n_heads;
  int64_t first;
  int64_t end;
};

/// The part of page `index` of a sequence that belongs to the item's KV head: K, V after it.
struct HeadPage {
  const std::byte* k;
  const std::byte* v;
};

HWY_INLINE HeadPage head_page(const PagedAttentionArgs& a, const PagedItem& item, int64_t index) {
  const KvLayer& cache = a.cache;
  const std::byte* page = cache.base + item.sequence->pages[index] * cache.page_stride;
  const int64_t offset = item.kv_head * cache.head_dim * kPageTokens * dtype_bytes(cache.dtype);
  return {page + offset, page + cache.v_offset() + offset};
}

/// Calls `use(p, index, next)` for the block's pages that hold slots of `needed`, with the page's
/// index in the sequence and that of the page to fetch meanwhile; notes which slots hold keys.
template <typename Use>
HWY_INLINE void for_pages(const PagedItem& item, int64_t block, KeyRange needed, BlockSlots& slots,
                          Use&& use) {
  const int64_t end_page = (needed.to + kPageTokens - 1) / kPageTokens;
  const bool partly_filled = item.sequence->page_begin != nullptr;
  for (int64_t p = 0; p < kBlockPages; ++p) {
    const int64_t index = block * kBlockPages + p;
    if (index < needed.from / kPageTokens || index >= end_page) continue;
    if (partly_filled) {
      const int64_t n = filled_slots(*item.sequence, index);
      slots.page_end[p] = p * kPageTokens + n;
      slots.has_empty_slots |= n < kPageTokens;
    }
    use(p, index, index + kBlockPages < end_page ? index + kBlockPages : index);
  }
}

/// A block whose keys and values are read where they lie.
template <typename T>
inline KeyBlock<T> block_in_place(const PagedAttentionArgs& a, const PagedItem& item, int64_t block,
                                  KeyRange needed) {
  KeyBlock<T> out;
  out.v_stride = a.cache.head_dim;
  for_pages(item, block, needed, out, [&](int64_t p, int64_t index, int64_t) {
    const HeadPage page = head_page(a, item, index);
    out.k[p] = reinterpret_cast<const T*>(page.k);
    out.v[p] = reinterpret_cast<const T*>(page.v);
  });
  return out;
}

/// A block widened to f32 once for all rows of a tile.
inline KeyBlock<float> widened_block(const PagedAttentionArgs& a, const PagedItem& item,
                                     int64_t block, KeyRange needed, KeyBlockMemory& memory) {
  const int64_t d = a.cache.head_dim;
  const int64_t padded_dim = (d + 15) / 16 * 16;
  KeyBlock<float> out;
  out.v_stride = padded_dim;
  for_pages(item, block, needed, out, [&](int64_t p, int64_t index, int64_t next_index) {
    const HeadPage page = head_page(a, item, index);
    const HeadPage next = head_page(a, item, next_index);
    float* k_out = memory.k + p * kPageTokens * d;
    float* v_out = memory.v + p * kPageTokens * padded_dim;
    widen(a.cache.dtype, page.k, next.k, k_out, d * kPageTokens);
    widen_values(a.cache, page.v, next.v, v_out, padded_dim);
    out.k[p] = k_out;
    out.v[p] = v_out;
  });
  return out;
}

/// seen[r] = slots that row r of the item's tile sees, as a range of its sequence's.
inline void find_seen(const PagedAttentionArgs& a, const PagedItem& item, KeyRange* seen) {
  const SequenceRows& s = *item.sequence;
  PageCursor first(s.page_begin);
  PageCursor last(s.page_begin);
  for (int64_t t = item.first; t < item.end; ++t) {
    const int64_t position = s.kv_len - s.n_rows + t;
    const int64_t from = a.window > 0 && position >= a.window ? position + 1 - a.window : 0;
    const KeyRange slots{first.slot_of(from), last.slot_of(position) + 1};
    for (int64_t h = 0; h < item.n_heads; ++h) *seen++ = slots;
  }
}

inline KeyRange within_block(KeyRange keys, int64_t block) {
  const int64_t from = keys.from - block * kBlockKeys;
  const int64_t to = keys.to - block * kBlockKeys;
  return {from > 0 ? from : 0, to < kBlockKeys ? to : kBlockKeys};
}

inline void attend_item(const PagedAttentionArgs& a, const PagedItem& item) {
  QueryTileMemory memory;
  KeyBlockMemory keys;
  const SequenceRows& s = *item.sequence;
  const int64_t d = a.cache.head_dim;
  const int64_t n_tokens = item.end - item.first;
  const QueryTile tile = memory.tile(n_tokens * item.n_heads, d);
  const RowGroups groups(tile.n_rows);
  start_tile(tile);
  const float factor = query_factor(a.scale);
  for (int64_t r = 0; r < tile.n_rows; ++r) {
    const int64_t row = s.row + item.first + r / item.n_heads;
    const int64_t head = item.first_head + r % item.n_heads;
    pack_query(tile, groups, r, a.q + row * a.ldq + head * d, factor);
  }
  KeyRange seen[kTileRows];
  find_seen(a, item, seen);
  const KeyRange needed{seen[0].from, seen[tile.n_rows - 1].to};
  const bool whole_vectors = tile.padded_dim == d;
  for (int64_t block = needed.from / kBlockKeys; block * kBlockKeys < needed.to; ++block) {
    for (int64_t r = 0; r < tile.n_rows; ++r) {
      memory.visible[r] = within_block(seen[r], block);
    }
    if (whole_vectors && a.cache.dtype == DType::kF32) {
      attend_block(tile, block_in_place<float>(a, item, block, needed), memory.visible);
    } else if (whole_vectors && a.cache.dtype == DType::kBF16 && groups.count <= 2) {
      // Read once or twice: widening it as it is read costs less than a widened copy.
      attend_block(tile, block_in_place<hwy::bfloat16_t>(a, item, block, needed), memory.visible);
    } else {
      attend_block(tile, widened_block(a, item, block, needed, keys), memory.visible);
    }
  }
  for (int64_t r = 0; r < tile.n_rows; ++r) {
    const int64_t row = s.row + item.first + r / item.n_heads;
    const int64_t head = item.first_head + r % item.n_heads;
    finish_row(tile, r, a.out + row * a.ldo + head * d);
  }
}

/// How a call is cut into items. The cut depends on the number of threads; no row's result does.
struct PagedPlan {
  int64_t group;        ///< query heads a KV head
  int64_t group_parts;  ///< parts a group is cut into
  int64_t part_heads;   ///< heads a part, at most
  int64_t tile_tokens;  ///< tokens an item, at most
  int64_t n_items;

  int64_t token_tiles(const SequenceRows& s) const {
    return (s.n_rows + tile_tokens - 1) / tile_tokens;
  }
  int64_t items_of(const PagedAttentionArgs& a, const SequenceRows& s) const {
    return a.cache.n_kv_heads * group_parts * token_tiles(s);
  }
};

inline PagedPlan plan_items(const PagedAttentionArgs& a, int64_t threads) {
  PagedPlan plan{};
  plan.group = a.n_heads / a.cache.n_kv_heads;
  const auto cut = [&](int64_t group_parts) {
    plan.group_parts = group_parts;
    plan.part_heads = (plan.group + group_parts - 1) / group_parts;
    plan.group_parts = (plan.group + plan.part_heads - 1) / plan.part_heads;
    plan.tile_tokens = kTileRows / plan.part_heads;
    plan.n_items = 0;
    for (int64_t i = 0; i < a.n_sequences; ++i) plan.n_items += plan.items_of(a, a.sequences[i]);
  };
  cut((plan.group + kTileRows - 1) / kTileRows);
  // A decode step of one sequence: the threads share the heads of a group rather than idle.
  if (plan.n_items > 0 && plan.n_items < threads && plan.group > plan.group_parts) {
    const int64_t wanted = plan.group_parts * ((threads + plan.n_items - 1) / plan.n_items);
    cut(wanted < plan.group ? wanted : plan.group);
  }
  return plan;
}

inline PagedItem item_at(const PagedAttentionArgs& a, const PagedPlan& plan, int64_t index) {
  const SequenceRows* s = a.sequences;
  for (; index >= plan.items_of(a, *s); ++s) index -= plan.items_of(a, *s);
  const int64_t per_tile = a.cache.n_kv_heads * plan.group_parts;
  // The last tokens see most keys: they start first, so that threads end together.
  const int64_t token_tile = plan.token_tiles(*s) - 1 - index / per_tile;
  const int64_t kv_head = index % per_tile / plan.group_parts;
  const int64_t part = index % plan.group_parts;
  const int64_t first_of_group = part * plan.part_heads;
  const int64_t left = plan.group - first_of_group;
  const int64_t first = token_tile * plan.tile_tokens;
  const int64_t end = first + plan.tile_tokens;
  return {.sequence = s,
          .kv_head = kv_head,
          .first_head = kv_head * plan.group + first_of_group,
          .n_heads = left < plan.part_heads ? left : plan.part_heads,
          .first = first,
          .end = end < s->n_rows ? end : s->n_rows};
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
