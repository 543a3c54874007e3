#pragma once

#include <cstdint>

#include "ops/attention.h"

namespace triptych {

/// Keys are folded in blocks of 64 (four pages), whatever the caller's chunking.
constexpr int64_t kBlockPages = 4;
constexpr int64_t kBlockKeys = kBlockPages * kPageTokens;
/// Query rows that share one pass over the keys.
constexpr int64_t kTileRows = 96;

/// 64 consecutive slots of one head: up to 64 keys, in the first slots of each page. What the
/// others hold is never used.
struct BlockSlots {
  /// Slot of the block where each page's keys end.
  int64_t page_end[kBlockPages] = {kPageTokens, 2 * kPageTokens, 3 * kPageTokens, kBlockKeys};
  bool has_empty_slots = false;  ///< a page's keys end before it does
};

/// The same with keys and values, f32 or bf16 (widened as it is read).
template <typename T>
struct KeyBlock : BlockSlots {
  const T* k[kBlockPages] = {};  ///< [head_dim][16] each
  const T* v[kBlockPages] = {};  ///< [16][v_stride] each, whole vectors readable up to padded_dim
  int64_t v_stride = 0;
};

/// Slots [from, to), of a sequence or of a block; those of them that hold keys are meant.
struct KeyRange {
  int64_t from;
  int64_t to;
  bool empty() const { return from >= to; }
  bool whole_block() const { return from == 0 && to == kBlockKeys; }
};

/// Query rows of one head (or of the heads that share one KV head) and their running softmax.
struct QueryTile {
  int64_t n_rows;
  int64_t head_dim;
  int64_t padded_dim;  ///< head_dim rounded up to 16
  float* q;            ///< [n_rows * head_dim], packed by pack_query
  float* out;          ///< [n_rows, padded_dim], sums of weighted values
  float* max;          ///< [n_rows] largest score so far
  float* sum;          ///< [n_rows] sum of weights so far

  /// Rows [first, first + n). Queries must be packed anew: they lie by groups of the tile's rows.
  QueryTile rows(int64_t first, int64_t n) const {
    return {n,           head_dim,   padded_dim, q + first * head_dim, out + first * padded_dim,
            max + first, sum + first};
  }
};

/// Memory of a QueryTile, on the stack of the thread that computes it: kernels do not allocate.
struct QueryTileMemory {
  alignas(64) float q[kTileRows * kMaxHeadDim];
  alignas(64) float out[kTileRows * kMaxHeadDim];
  alignas(64) float max[kTileRows];
  alignas(64) float sum[kTileRows];
  KeyRange visible[kTileRows];

  QueryTile tile(int64_t n_rows, int64_t head_dim) {
    return {n_rows, head_dim, (head_dim + 15) / 16 * 16, q, out, max, sum};
  }
};

}  // namespace triptych
