#include "ops/attention.h"

#include <fmt/format.h>

#include "base/checked.h"

namespace triptych {
namespace {

/// The pages that hold tokens [0, kv_len): one comparison a page, none behind a bad one.
Status check_page_begin(const char* op, const SequenceRows& s) {
  if (s.page_begin[0] != 0) {
    return internal_error(fmt::format("{}: the first page begins at {}", op, s.page_begin[0]));
  }
  for (int64_t i = 0; s.page_begin[i] < s.kv_len; ++i) {
    const int64_t n = static_cast<int64_t>(s.page_begin[i + 1]) - s.page_begin[i];
    if (n < 1 || n > kPageTokens) {
      return internal_error(
          fmt::format("{}: page {} holds {} tokens, expected 1 to {}", op, i, n, kPageTokens));
    }
  }
  return Status::ok();
}

Status check_sequences(const char* op, const SequenceRows* sequences, int64_t n_sequences) {
  for (int64_t i = 0; i < n_sequences; ++i) {
    const SequenceRows& s = sequences[i];
    if (s.n_rows < 0 || s.kv_len < s.n_rows || s.pages == nullptr) {
      return internal_error(fmt::format("{}: sequence {} has {} rows and {} cached tokens", op, i,
                                        s.n_rows, s.kv_len));
    }
    if (s.page_begin != nullptr) TRIPTYCH_RETURN_IF_ERROR(check_page_begin(op, s));
  }
  return Status::ok();
}

Status check_head_dim(const char* op, int64_t head_dim) {
  if (head_dim >= 1 && head_dim <= kMaxHeadDim) return Status::ok();
  return unsupported(
      fmt::format("{}: heads of {} elements, at most {} are supported", op, head_dim, kMaxHeadDim));
}

Status check_cache(const char* op, const KvLayer& cache) {
  if (cache.dtype != DType::kF32 && cache.dtype != DType::kBF16 && cache.dtype != DType::kF16) {
    return unsupported(
        fmt::format("{}: KV cache of {}, expected f32, bf16 or f16", op, dtype_name(cache.dtype)));
  }
  if (cache.n_kv_heads <= 0 || cache.base == nullptr) {
    return internal_error(fmt::format("{}: KV cache of {} heads", op, cache.n_kv_heads));
  }
  return check_head_dim(op, cache.head_dim);
}

}  // namespace

Status kv_write(const OpContext& ctx, const KvWriteArgs& args) {
  TRIPTYCH_RETURN_IF_ERROR(check_cache("kv_write", args.cache));
  TRIPTYCH_RETURN_IF_ERROR(check_sequences("kv_write", args.sequences, args.n_sequences));
  ctx.kernels->kv_write(args, ctx.stream);
  return Status::ok();
}

Status paged_attention(const OpContext& ctx, const PagedAttentionArgs& args) {
  TRIPTYCH_RETURN_IF_ERROR(check_cache("paged_attention", args.cache));
  TRIPTYCH_RETURN_IF_ERROR(check_sequences("paged_attention", args.sequences, args.n_sequences));
  if (args.n_heads <= 0 || args.n_heads % args.cache.n_kv_heads != 0 || args.window < 0) {
    return internal_error(fmt::format("paged_attention: {} query heads over {} KV heads, window {}",
                                      args.n_heads, args.cache.n_kv_heads, args.window));
  }
  ctx.kernels->paged_attention(args, ctx.stream);
  return Status::ok();
}

Status segment_attention(const OpContext& ctx, const SegmentAttentionArgs& args) {
  TRIPTYCH_RETURN_IF_ERROR(check_head_dim("segment_attention", args.head_dim));
  for (int64_t i = 0; i < args.n_segments; ++i) {
    if (args.segment_starts[0] != 0 || args.segment_starts[i + 1] < args.segment_starts[i]) {
      return internal_error("segment_attention: segment starts must ascend from 0");
    }
  }
  const int64_t n = args.n_segments > 0 ? args.segment_starts[args.n_segments] : 0;
  if (n == 0) return Status::ok();
  const ArenaScope scope(*ctx.scratch);
  SegmentAttentionArgs call = args;
  TRIPTYCH_ASSIGN_OR_RETURN(call.scratch,
                            ctx.scratch->allocate_bytes(segment_attention_scratch_bytes(
                                n, args.n_heads, args.head_dim, ctx.stream.pool->size())));
  ctx.kernels->segment_attention(call, ctx.stream);
  return Status::ok();
}

size_t segment_attention_scratch_bytes(int64_t n_rows, int64_t n_heads, int64_t head_dim,
                                       int n_threads) {
  // Each thread repacks the keys and values of the head that it works on: rows in pages of 16,
  // values padded to whole vectors.
  (void)n_heads;
  const int64_t rows = round_up(n_rows, kPageTokens);
  const int64_t floats = rows * (head_dim + round_up(head_dim, 16));
  return static_cast<size_t>(n_threads) * static_cast<size_t>(floats) * sizeof(float);
}

OpCost attention_cost(int64_t n_pairs, int64_t n_heads, int64_t n_kv_heads, int64_t head_dim,
                      int64_t kv_tokens_read, DType kv_dtype) {
  return {4.0 * static_cast<double>(n_pairs) * static_cast<double>(n_heads * head_dim),
          2.0 * static_cast<double>(kv_tokens_read) *
              static_cast<double>(n_kv_heads * head_dim * dtype_bytes(kv_dtype))};
}

}  // namespace triptych
