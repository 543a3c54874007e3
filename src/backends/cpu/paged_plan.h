#pragma once

#include <cstdint>

#include "backends/cpu/attention_tile.h"

namespace triptych {

/// Neighbours in the batch that one item takes: one sequence, or several that decode one token each
/// and begin with the same blocks of pages.
struct SequenceRun {
  const SequenceRows* first;
  int64_t n;
  int64_t shared_blocks;
};

/// Part of the work: tokens [first, end) of the new rows of each sequence of a run, and query heads
/// [first_head, first_head + n_heads) of one KV head, folded into the rows of a tile as
/// (sequence * tokens + token) * n_heads + head.
struct PagedItem {
  SequenceRun run;
  int64_t kv_head;
  int64_t first_head;
  int64_t n_heads;
  int64_t first;
  int64_t end;

  int64_t rows_of_sequence() const { return (end - first) * n_heads; }
};

/// How a call is cut into items. The cut depends on the number of threads; no row's result does.
struct PagedPlan {
  int64_t group;          ///< query heads a KV head
  int64_t group_parts;    ///< parts a group is cut into
  int64_t part_heads;     ///< heads a part, at most
  int64_t tile_tokens;    ///< tokens an item, at most
  int64_t run_sequences;  ///< sequences an item, at most
  int64_t n_items;

  int64_t token_tiles(const SequenceRows& s) const {
    return (s.n_rows + tile_tokens - 1) / tile_tokens;
  }
  int64_t items_of(const PagedAttentionArgs& a, const SequenceRun& run) const {
    return a.cache.n_kv_heads * group_parts * token_tiles(*run.first);
  }
};

/// The run that starts with sequence `index`. It ends before a neighbour that would halve what is
/// shared, or that shares twice as much with the one before it.
inline SequenceRun run_at(const PagedAttentionArgs& a, const PagedPlan& plan, int64_t index) {
  SequenceRun run{a.sequences + index, 1, 0};
  int64_t most = 0;
  while (run.first->n_rows == 1 && run.n < plan.run_sequences && index + run.n < a.n_sequences) {
    const SequenceRows& next = run.first[run.n];
    const int64_t blocks = next.shared_pages / kBlockPages;
    const int64_t least = run.n == 1 || blocks < run.shared_blocks ? blocks : run.shared_blocks;
    most = blocks > most ? blocks : most;
    if (next.n_rows != 1 || 2 * least <= most) break;
    run.shared_blocks = least;
    ++run.n;
  }
  return run;
}

inline void count_items(const PagedAttentionArgs& a, PagedPlan& plan) {
  plan.n_items = 0;
  for (int64_t i = 0; i < a.n_sequences;) {
    const SequenceRun run = run_at(a, plan, i);
    plan.n_items += plan.items_of(a, run);
    i += run.n;
  }
}

inline PagedPlan plan_items(const PagedAttentionArgs& a, int64_t threads) {
  PagedPlan plan{};
  plan.group = a.n_heads / a.cache.n_kv_heads;
  plan.run_sequences = 1;
  const auto cut = [&](int64_t group_parts) {
    plan.group_parts = group_parts;
    plan.part_heads = (plan.group + group_parts - 1) / group_parts;
    plan.group_parts = (plan.group + plan.part_heads - 1) / plan.part_heads;
    plan.tile_tokens = kTileRows / plan.part_heads;
    count_items(a, plan);
  };
  cut((plan.group + kTileRows - 1) / kTileRows);
  // A decode step of one sequence: the threads share the heads of a group rather than idle.
  if (plan.n_items > 0 && plan.n_items < threads && plan.group > plan.group_parts) {
    const int64_t wanted = plan.group_parts * ((threads + plan.n_items - 1) / plan.n_items);
    cut(wanted < plan.group ? wanted : plan.group);
  }
  // Sequences share the reading of common pages as far as that leaves every thread an item.
  const int64_t per_thread = plan.n_items / threads;
  if (per_thread > 1) {
    plan.run_sequences = per_thread < plan.tile_tokens ? per_thread : plan.tile_tokens;
    count_items(a, plan);
  }
  return plan;
}

inline PagedItem item_at(const PagedAttentionArgs& a, const PagedPlan& plan, int64_t index) {
  SequenceRun run = run_at(a, plan, 0);
  for (int64_t i = run.n; index >= plan.items_of(a, run); i += run.n) {
    index -= plan.items_of(a, run);
    run = run_at(a, plan, i);
  }
  const int64_t n_rows = run.first->n_rows;
  const int64_t per_tile = a.cache.n_kv_heads * plan.group_parts;
  // The last tokens see most keys: they start first, so that threads end together.
  const int64_t token_tile = plan.token_tiles(*run.first) - 1 - index / per_tile;
  const int64_t kv_head = index % per_tile / plan.group_parts;
  const int64_t part = index % plan.group_parts;
  const int64_t first_of_group = part * plan.part_heads;
  const int64_t left = plan.group - first_of_group;
  const int64_t first = token_tile * plan.tile_tokens;
  const int64_t end = first + plan.tile_tokens;
  return {.run = run,
          .kv_head = kv_head,
          .first_head = kv_head * plan.group + first_of_group,
          .n_heads = left < plan.part_heads ? left : plan.part_heads,
          .first = first,
          .end = end < n_rows ? end : n_rows};
}

}  // namespace triptych
