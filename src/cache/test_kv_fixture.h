#pragma once

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "cache/kv/invariants.h"
#include "cache/kv/page_layout.h"
#include "cache/kv/page_pool.h"
#include "cache/kv/prefix_index.h"
#include "cache/kv/prefix_key.h"
#include "cache/kv/sequence_pages.h"

namespace triptych::test {

inline MediaId media_id(uint8_t n) {
  MediaId id{};
  id.fill(n);
  return id;
}

inline PageLayout layout_of(int64_t n_tokens, const std::vector<MediaRun>& runs = {}) {
  Result<PageLayout> layout = PageLayout::plan(n_tokens, runs);
  EXPECT_TRUE(layout.is_ok()) << layout.status().message();
  return std::move(layout).value();
}

/// n, n + 1, ...
inline std::vector<int32_t> counting(int32_t first, size_t n) {
  std::vector<int32_t> ids(n);
  for (size_t i = 0; i < n; ++i) ids[i] = first + static_cast<int32_t>(i);
  return ids;
}

/// A pool of small pages (1 KiB) and the index over it.
struct KvParts {
  explicit KvParts(int64_t n_pages, const RecomputeCost& cost = {})
      : pool(std::move(PagePool::create({DType::kF32, 1, 1, 8}, n_pages, false)).value()),
        index(pool, cost) {}

  Status check(const std::vector<const SequencePages*>& tables) const {
    return check_invariants(pool, index, tables);
  }

  PagePool pool;
  PrefixIndex index;
  PrefixKey root = root_key({"model", "tenant"});
};

}  // namespace triptych::test
