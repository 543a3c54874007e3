#include "cache/kv/page_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"

namespace triptych {

Result<PagePool> PagePool::create(const KvGeometry& geometry, int64_t n_pages, bool huge_pages) {
  PagePool pool;
  pool.geometry_ = geometry;
  pool.n_pages_ = n_pages;
  const auto n_bytes =
      checked_mul(static_cast<uint64_t>(geometry.page_bytes()), static_cast<uint64_t>(n_pages));
  if (n_pages < 0 || n_pages > INT32_MAX || !n_bytes) {
    return resource_exhausted(fmt::format("KV cache of {} pages is too large", n_pages));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(pool.memory_, PageBuffer::allocate(*n_bytes, huge_pages));
  const int64_t layer_bytes =
      KvLayer::page_bytes(geometry.dtype, geometry.n_kv_heads, geometry.head_dim);
  for (int64_t i = 0; i < geometry.n_layers; ++i) {
    pool.layers_.push_back({.dtype = geometry.dtype,
                            .n_kv_heads = geometry.n_kv_heads,
                            .head_dim = geometry.head_dim,
                            .base = pool.memory_.data() + i * layer_bytes,
                            .page_stride = geometry.page_bytes()});
  }
  pool.free_.resize(static_cast<size_t>(n_pages));
  for (int64_t i = 0; i < n_pages; ++i) {
    pool.free_[static_cast<size_t>(i)] = static_cast<int32_t>(n_pages - 1 - i);
  }
  return pool;
}

Status PagePool::reserve(int64_t n_tokens, std::vector<int32_t>& table) {
  const int64_t wanted = ceil_div(n_tokens, kPageTokens) - static_cast<int64_t>(table.size());
  if (wanted > n_free()) {
    return resource_exhausted(
        fmt::format("KV cache: {} more pages of {} tokens are needed, {} of "
                    "{} are free",
                    wanted, kPageTokens, n_free(), n_pages_));
  }
  for (int64_t i = 0; i < wanted; ++i) {
    table.push_back(free_.back());
    free_.pop_back();
  }
  return Status::ok();
}

void PagePool::release(std::vector<int32_t>& table) {
  free_.insert(free_.end(), table.begin(), table.end());
  std::sort(free_.begin(), free_.end(), std::greater<>());
  table.clear();
}

}  // namespace triptych
