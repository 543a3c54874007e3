#pragma once

#include <cstdint>
#include <vector>

#include "base/memory.h"
#include "core/dtype.h"
#include "ops/attention.h"

namespace triptych {

/// What one token's keys and values look like in all layers of a model.
struct KvGeometry {
  DType dtype = DType::kF32;
  int64_t n_layers = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;

  /// Bytes of a page of kPageTokens tokens over all layers.
  int64_t page_bytes() const { return n_layers * KvLayer::page_bytes(dtype, n_kv_heads, head_dim); }
};

/// All KV memory of an engine: pages of 16 tokens handed out one by one. Address space for every
/// page is taken at once and physical memory when a page is first written, so a pool that is large
/// on paper costs what is used. One thread (the engine's).
class PagePool {
 public:
  PagePool() = default;
  /// kResourceExhausted when the address space is refused.
  static Result<PagePool> create(const KvGeometry& geometry, int64_t n_pages, bool huge_pages);

  int64_t n_pages() const { return n_pages_; }
  int64_t n_free() const { return static_cast<int64_t>(free_.size()); }
  const KvGeometry& geometry() const { return geometry_; }

  /// Appends pages to `table` until it holds `n_tokens` tokens: all or nothing.
  /// kResourceExhausted with both numbers when too few are free.
  Status reserve(int64_t n_tokens, std::vector<int32_t>& table);
  /// Takes back all pages of a table and empties it.
  void release(std::vector<int32_t>& table);

  /// The pool as the attention operators of each layer see it.
  const std::vector<KvLayer>& layers() const { return layers_; }

 private:
  KvGeometry geometry_;
  int64_t n_pages_ = 0;
  PageBuffer memory_;
  std::vector<KvLayer> layers_;
  std::vector<int32_t> free_;  ///< lowest page last, so that pages are taken in order
};

}  // namespace triptych
