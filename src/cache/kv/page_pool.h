#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/memory.h"
#include "core/dtype.h"
#include "core/tensor_registry.h"
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

/// What a page holds, so that policies can treat pictures' pages otherwise than text's.
struct PageType {
  Modality modality = Modality::kText;
  DType dtype = DType::kF32;  ///< of its keys and values; today the pool's for every page
};

/// All KV memory of an engine: pages of 16 tokens with reference counts. A page is free, or held by
/// as many tables as its count says; a published page is held by the prefix index as well
/// (cache/kv/CONTRACT.md). Address space for every page is taken at once and physical memory when a
/// page is first written, so a pool that is large on paper costs what is used: free pages are
/// handed out lowest first. One thread (the engine's).
class PagePool {
 public:
  PagePool() = default;
  /// kResourceExhausted when the address space is refused.
  static Result<PagePool> create(const KvGeometry& geometry, int64_t n_pages, bool huge_pages);

  int64_t n_pages() const { return n_pages_; }
  int64_t n_free() const { return static_cast<int64_t>(free_.size()); }
  /// Published pages that nobody but the index holds: what eviction can make free.
  int64_t n_reclaimable() const { return n_reclaimable_; }
  const KvGeometry& geometry() const { return geometry_; }

  /// `n` pages for text with one reference each, all or nothing. kResourceExhausted with both
  /// numbers when too few are free.
  Result<std::vector<int32_t>> allocate(int64_t n);
  /// One more holder of a page that is not free.
  void share(int32_t page);
  /// One holder less; the last one makes the page free.
  void drop(int32_t page);

  int32_t references(int32_t page) const { return pages_[index(page)].references; }
  PageType type(int32_t page) const { return pages_[index(page)].type; }
  void set_modality(int32_t page, Modality modality);
  /// Whether the prefix index holds it: its contents never change again.
  bool published(int32_t page) const { return pages_[index(page)].published; }
  /// For the index alone, which holds a reference while a page is published.
  void set_published(int32_t page, bool published);

  /// All layers of one page, for copies.
  std::span<std::byte> bytes(int32_t page);
  /// In no order; for the invariant checker.
  std::span<const int32_t> free_pages() const { return free_; }

  /// Appends pages to `table` until it holds `n_tokens` tokens of text: all or nothing.
  /// kResourceExhausted with both numbers when too few are free.
  Status reserve(int64_t n_tokens, std::vector<int32_t>& table);
  /// Drops all pages of a table and empties it.
  void release(std::vector<int32_t>& table);

  /// The pool as the attention operators of each layer see it.
  const std::vector<KvLayer>& layers() const { return layers_; }

 private:
  struct Page {
    int32_t references = 0;
    bool published = false;
    PageType type;
  };

  static size_t index(int32_t page) { return static_cast<size_t>(page); }
  static bool reclaimable(const Page& page) { return page.published && page.references == 1; }
  int32_t take_lowest();
  template <typename Change>
  void change(int32_t page, Change apply);

  KvGeometry geometry_;
  int64_t n_pages_ = 0;
  int64_t n_reclaimable_ = 0;
  PageBuffer memory_;
  std::vector<KvLayer> layers_;
  std::vector<Page> pages_;
  std::vector<int32_t> free_;  ///< a heap, lowest page first
};

}  // namespace triptych
