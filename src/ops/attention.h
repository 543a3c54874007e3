#pragma once

#include "ops/op_context.h"

namespace triptych {

constexpr int64_t kPageTokens = 16;
/// Longest head that attention kernels take; longer ones are refused (kUnsupported).
constexpr int64_t kMaxHeadDim = 256;

/// The KV pages of one layer. Page p is at base + p * page_stride: first K, laid out
/// [kv_head][head_dim][16 tokens] so that a query meets 16 keys at once, then V as
/// [kv_head][16 tokens][head_dim]. dtype is f32, bf16 or f16.
struct KvLayer {
  DType dtype = DType::kF32;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  std::byte* base = nullptr;
  int64_t page_stride = 0;  ///< bytes from a page to the next

  int64_t v_offset() const { return n_kv_heads * head_dim * kPageTokens * dtype_bytes(dtype); }
  /// Bytes of K and V of one page of one layer.
  static int64_t page_bytes(DType dtype, int64_t n_kv_heads, int64_t head_dim) {
    return 2 * n_kv_heads * head_dim * kPageTokens * dtype_bytes(dtype);
  }
};

/// One sequence's part of a packed batch: rows [row, row + n_rows) are its tokens at positions
/// [kv_len - n_rows, kv_len), pages[] its page table. Pages may be partly filled: the token at
/// position p of page i, page_begin[i] <= p < page_begin[i + 1], stands in slot p - page_begin[i].
/// Positions have no gaps, and kv_len, causality and windows count positions; slots that hold no
/// token are never used, whatever they contain. Both tables may reach beyond kv_len, and must reach
/// up to it.
struct SequenceRows {
  int64_t row = 0;
  int64_t n_rows = 0;
  int64_t kv_len = 0;  ///< tokens in the cache, these rows included
  const int32_t* pages = nullptr;
  /// [n_pages + 1]: position of each page's first token, then the number of tokens. It starts at 0,
  /// and a page holds 1 to 16 tokens. Null: every page is full.
  const int32_t* page_begin = nullptr;
  /// Leading pages that are those of the sequence before it in the batch too: filled alike, and all
  /// in front of either's rows. Whoever reads them may read them once for both; 0 is always right.
  int64_t shared_pages = 0;
};

/// Writes rows' keys and values into their pages, converted to the cache's dtype.
struct KvWriteArgs {
  const float* k;  ///< [n, n_kv_heads * head_dim], row stride ldk
  int64_t ldk;
  const float* v;
  int64_t ldv;
  KvLayer cache;
  const SequenceRows* sequences;
  int64_t n_sequences;
};

/// Causal attention of each row over its sequence's cached positions up to its own; query heads
/// share KV heads in groups (GQA). Online softmax over blocks (Dao et al., "FlashAttention", 2022):
/// no n x n buffer. The bits of a row depend on its sequence, layout of pages included, and not on
/// the batch, on chunking or on threads.
struct PagedAttentionArgs {
  const float* q;  ///< [n, n_heads * head_dim], row stride ldq
  int64_t ldq;
  int64_t n_heads;
  KvLayer cache;
  const SequenceRows* sequences;
  int64_t n_sequences;
  float scale;
  float* out;  ///< [n, n_heads * head_dim], row stride ldo
  int64_t ldo;
  int64_t window =
      0;  ///< each row sees at most its last `window` positions, itself included; 0: all
};

/// Bidirectional attention within segments of rows (pictures, tiles, windows, frames): row i sees
/// the rows of its own segment. K and V are dense f32, same head count as q.
struct SegmentAttentionArgs {
  const float* q;  ///< [n, n_heads * head_dim], row stride ld (q, k and v may share one buffer)
  const float* k;
  const float* v;
  int64_t ld;
  int64_t n_heads;
  int64_t head_dim;
  const int32_t* segment_starts;  ///< [n_segments + 1], ascending, first 0, last n
  int64_t n_segments;
  float scale;
  float* out;  ///< [n, n_heads * head_dim], row stride ldo
  int64_t ldo;
  void* scratch;  ///< segment_attention_scratch_bytes(...)
};

Status kv_write(const OpContext& ctx, const KvWriteArgs& args);
Status paged_attention(const OpContext& ctx, const PagedAttentionArgs& args);
/// Takes its scratch from ctx; args.scratch is ignored.
Status segment_attention(const OpContext& ctx, const SegmentAttentionArgs& args);

size_t segment_attention_scratch_bytes(int64_t n_rows, int64_t n_heads, int64_t head_dim,
                                       int n_threads);

/// `n_pairs`: query-key pairs that are computed (causal ones counted once).
OpCost attention_cost(int64_t n_pairs, int64_t n_heads, int64_t n_kv_heads, int64_t head_dim,
                      int64_t kv_tokens_read, DType kv_dtype);

}  // namespace triptych
