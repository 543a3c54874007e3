#include "cache/kv/page_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

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
  pool.pages_.resize(static_cast<size_t>(n_pages));
  pool.free_.resize(static_cast<size_t>(n_pages));
  for (int64_t i = 0; i < n_pages; ++i) {  // ascending is a heap already
    pool.free_[static_cast<size_t>(i)] = static_cast<int32_t>(i);
  }
  return pool;
}

int32_t PagePool::take_lowest() {
  std::pop_heap(free_.begin(), free_.end(), std::greater<>());
  const int32_t page = free_.back();
  free_.pop_back();
  pages_[index(page)] = {.references = 1, .published = false, .type = {.dtype = geometry_.dtype}};
  return page;
}

Result<std::vector<int32_t>> PagePool::allocate(int64_t n) {
  std::vector<int32_t> pages;
  if (n > n_free()) {
    return resource_exhausted(
        fmt::format("KV cache: {} more pages of {} tokens are needed, {} of "
                    "{} are free",
                    n, kPageTokens, n_free(), n_pages_));
  }
  pages.reserve(static_cast<size_t>(std::max<int64_t>(n, 0)));
  for (int64_t i = 0; i < n; ++i) pages.push_back(take_lowest());
  return pages;
}

template <typename Change>
void PagePool::change(int32_t page, Change apply) {
  Page& entry = pages_[index(page)];
  n_reclaimable_ -= reclaimable(entry) ? 1 : 0;
  apply(entry);
  n_reclaimable_ += reclaimable(entry) ? 1 : 0;
}

void PagePool::share(int32_t page) {
  change(page, [](Page& entry) { ++entry.references; });
}

void PagePool::drop(int32_t page) {
  change(page, [](Page& entry) { --entry.references; });
  if (references(page) != 0) return;
  free_.push_back(page);
  std::push_heap(free_.begin(), free_.end(), std::greater<>());
}

void PagePool::set_modality(int32_t page, Modality modality) {
  pages_[index(page)].type.modality = modality;
}

void PagePool::set_published(int32_t page, bool published) {
  change(page, [published](Page& entry) { entry.published = published; });
}

std::span<std::byte> PagePool::bytes(int32_t page) {
  const auto n_bytes = static_cast<size_t>(geometry_.page_bytes());
  return {memory_.data() + index(page) * n_bytes, n_bytes};
}

Status PagePool::reserve(int64_t n_tokens, std::vector<int32_t>& table) {
  const int64_t wanted = ceil_div(n_tokens, kPageTokens) - static_cast<int64_t>(table.size());
  TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<int32_t> pages, allocate(wanted));
  table.insert(table.end(), pages.begin(), pages.end());
  return Status::ok();
}

void PagePool::release(std::vector<int32_t>& table) {
  for (const int32_t page : table) drop(page);
  table.clear();
}

}  // namespace triptych
