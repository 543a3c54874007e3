#pragma once

#include <span>

#include "cache/kv/page_pool.h"
#include "cache/kv/prefix_index.h"
#include "cache/kv/sequence_pages.h"

namespace triptych {

/// Checks all that cache/kv/CONTRACT.md promises about a pool, the index over it and every table
/// that takes pages from it. kInternal naming the first promise that is broken and the page. Reads
/// everything once: for debug builds, after each step, and for tests.
Status check_invariants(const PagePool& pool, const PrefixIndex& index,
                        std::span<const SequencePages* const> tables);

}  // namespace triptych
