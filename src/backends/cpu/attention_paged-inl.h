// Causal attention over KV pages. Compiled once a Highway target; see attention_core-inl.h.
#if defined(TRIPTYCH_BACKENDS_CPU_ATTENTION_PAGED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIPTYCH_BACKENDS_CPU_ATTENTION_PAGED_INL_H_
#undef TRIPTYCH_BACKENDS_CPU_ATTENTION_PAGED_INL_H_
#else
#define TRIPTYCH_BACKENDS_CPU_ATTENTION_PAGED_INL_H_
#endif

#include "backends/cpu/attention_core-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triptych {
namespace HWY_NAMESPACE {

/// Keys and values of a block, widened to f32.
struct KeyBlockMemory {
  alignas(64) float k[kBlockKeys * kMaxHeadDim];
  alignas(64) float v[kBlockKeys * kMaxHeadDim];
};

/// kLanes values of binary16.
HWY_INLINE F32Vec widen_f16(const uint16_t* src) {
  const F32Tag tag;
#if HWY_MAX_BYTES >= 32
  const hn::Rebind<hwy::float16_t, F32Tag> half_tag;
  return hn::PromoteTo(tag, hn::LoadU(half_tag, reinterpret_cast<const hwy::float16_t*>(src)));
#else
  // Without F16C Highway does not keep infinity and NaN. Exponent and mantissa move into place;
  // the product corrects the bias and normalises subnormals, exactly.
  const hn::RebindToUnsigned<F32Tag> wide_tag;
  const hn::Rebind<uint16_t, F32Tag> half_tag;
  const auto bits = hn::PromoteTo(wide_tag, hn::LoadU(half_tag, src));
  const auto magnitude = hn::And(bits, hn::Set(wide_tag, 0x7fff));
  const auto finite = hn::BitCast(
      wide_tag, hn::Mul(hn::BitCast(tag, hn::ShiftLeft<13>(magnitude)), hn::Set(tag, 0x1p112f)));
  const auto special = hn::Or(hn::ShiftLeft<13>(magnitude), hn::Set(wide_tag, 0x7f800000u));
  const auto is_special = hn::Gt(hn::BitCast(hn::RebindToSigned<F32Tag>(), magnitude),
                                 hn::Set(hn::RebindToSigned<F32Tag>(), 0x7bff));
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(wide_tag, 0x8000)));
  const auto value = hn::IfThenElse(hn::RebindMask(wide_tag, is_special), special, finite);
  return hn::BitCast(tag, hn::Or(value, sign));
#endif
}

/// n elements to f32; n is a multiple of 16, a page holds no other sizes. `next` will be read
/// after it: fetched alongside, since pages are too short for the hardware to run ahead.
HWY_INLINE void widen(DType dtype, const std::byte* src, const std::byte* next, float* dst,
                      int64_t n) {
  const F32Tag tag;
  if (dtype == DType::kBF16) {
    const hn::Rebind<uint16_t, F32Tag> half_tag;
    const hn::RebindToUnsigned<F32Tag> wide_tag;
    const auto* in = reinterpret_cast<const uint16_t*>(src);
    for (int64_t i = 0; i < n; i += kLanes) {
      if (i % 32 == 0) __builtin_prefetch(next + 2 * i, 0, 2);
      const auto bits = hn::PromoteTo(wide_tag, hn::LoadU(half_tag, in + i));
      hn::StoreU(hn::BitCast(tag, hn::ShiftLeft<16>(bits)), tag, dst + i);
    }
  } else if (dtype == DType::kF16) {
    for (int64_t i = 0; i < n; i += kLanes) {
      if (i % 32 == 0) __builtin_prefetch(next + 2 * i, 0, 2);
      hn::StoreU(widen_f16(reinterpret_cast<const uint16_t*>(src) + i), tag, dst + i);
    }
  } else {
    std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
  }
}

/// V of one page of one head, [16][head_dim] of the cache's dtype, as [16][padded_dim] f32.
inline void widen_values(const KvLayer& cache, const std::byte* src, const std::byte* next,
                         float* dst, int64_t padded_dim) {
  const int64_t d = cache.head_dim;
  widen(cache.dtype, src, next, dst, kPageTokens * d);
  if (padded_dim == d) return;
  // Spread the dense rows from the last to the first, so that none is overwritten before its move.
  for (int64_t t = kPageTokens - 1; t >= 0; --t) {
    std::memmove(dst + t * padded_dim, dst + t * d, static_cast<size_t>(d) * sizeof(float));
    for (int64_t i = d; i < padded_dim; ++i) dst[t * padded_dim + i] = 0;
  }
}

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

/// The block's pages that hold keys of `needed`; read in place where they are f32.
inline KeyBlock load_block(const PagedAttentionArgs& a, const PagedItem& item, int64_t block,
                           KeyRange needed, KeyBlockMemory& memory) {
  const int64_t d = a.cache.head_dim;
  const int64_t padded_dim = (d + 15) / 16 * 16;
  const bool in_place = a.cache.dtype == DType::kF32 && padded_dim == d;
  const int64_t end_page = (needed.to + kPageTokens - 1) / kPageTokens;
  KeyBlock out{{}, {}, padded_dim};
  for (int64_t p = 0; p < kBlockPages; ++p) {
    const int64_t index = block * kBlockPages + p;
    if (index < needed.from / kPageTokens || index >= end_page) continue;
    const HeadPage page = head_page(a, item, index);
    if (in_place) {
      out.k[p] = reinterpret_cast<const float*>(page.k);
      out.v[p] = reinterpret_cast<const float*>(page.v);
      continue;
    }
    const bool more = index + kBlockPages < end_page;
    const HeadPage next = more ? head_page(a, item, index + kBlockPages) : page;
    float* k_out = memory.k + p * kPageTokens * d;
    float* v_out = memory.v + p * kPageTokens * padded_dim;
    widen(a.cache.dtype, page.k, next.k, k_out, d * kPageTokens);
    widen_values(a.cache, page.v, next.v, v_out, padded_dim);
    out.k[p] = k_out;
    out.v[p] = v_out;
  }
  return out;
}

/// Keys that the token at `position` sees.
inline KeyRange seen_keys(const PagedAttentionArgs& a, int64_t position) {
  const int64_t to = position + 1;
  return {a.window > 0 && to > a.window ? to - a.window : 0, to};
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
  const int64_t position = s.kv_len - s.n_rows + item.first;  // of the item's first token
  const KeyRange needed{seen_keys(a, position).from, seen_keys(a, position + n_tokens - 1).to};
  for (int64_t block = needed.from / kBlockKeys; block * kBlockKeys < needed.to; ++block) {
    for (int64_t r = 0; r < tile.n_rows; ++r) {
      memory.visible[r] = within_block(seen_keys(a, position + r / item.n_heads), block);
    }
    attend_block(tile, load_block(a, item, block, needed, keys), memory.visible);
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
