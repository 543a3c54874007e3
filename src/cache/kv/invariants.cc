#include "cache/kv/invariants.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace triptych {

namespace {

/// Who holds a page.
struct Holders {
  int64_t n_tables = 0;
  int64_t n_writers = 0;  ///< tables in which it can take tokens
  bool in_index = false;
};

using PageHolders = std::vector<Holders>;

Status check_table(const PagePool& pool, const SequencePages& table, PageHolders& holders) {
  const PageLayout& layout = table.layout();
  const auto n_pages = static_cast<int64_t>(table.pages().size());
  if (n_pages > layout.n_pages() || table.n_stored() > table.n_reserved()) {
    return internal_error(
        fmt::format("table: {} pages and {} tokens stored of a layout of {} and {}", n_pages,
                    table.n_stored(), layout.n_pages(), layout.n_tokens()));
  }
  std::vector<int32_t> sorted = table.pages();
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    return internal_error("table: a page stands in it twice");
  }
  for (int64_t i = 0; i < n_pages; ++i) {
    const int32_t page = table.pages()[static_cast<size_t>(i)];
    if (page < 0 || page >= pool.n_pages()) {
      return internal_error(fmt::format("table: page {} of a pool of {}", page, pool.n_pages()));
    }
    if (pool.type(page).modality != layout.modality(i)) {
      return internal_error(fmt::format("page {}: typed {}, holds {}", page,
                                        modality_name(pool.type(page).modality),
                                        modality_name(layout.modality(i))));
    }
    Holders& holder = holders[static_cast<size_t>(page)];
    ++holder.n_tables;
    const bool is_complete = layout.is_closed(i) && layout.begin(i + 1) <= table.n_stored();
    if (!is_complete) ++holder.n_writers;
  }
  return Status::ok();
}

/// Slots without a token in pages that can take no more: at most 15 a stretch of one kind.
Status check_waste(const PageLayout& layout) {
  int64_t n_stretches = 0;
  for (int64_t i = 0; i < layout.n_pages(); ++i) {
    n_stretches += i == 0 || layout.run(i) != layout.run(i - 1) ? 1 : 0;
  }
  if (layout.n_wasted() <= (kPageTokens - 1) * n_stretches) return Status::ok();
  return internal_error(
      fmt::format("layout: {} slots are wasted in {} stretches", layout.n_wasted(), n_stretches));
}

/// What a table published is what the index would give out for the same keys.
Status check_published(const PrefixIndex& index, const SequencePages& table) {
  for (int64_t i = 0; table.chain() != nullptr && i < table.n_published(); ++i) {
    const auto found = index.entries().find(table.chain()->key(i));
    if (found == index.entries().end()) continue;  // cleared meanwhile
    if (found->second.n_tokens != table.layout().n_filled(i)) {
      return internal_error(fmt::format("page {}: {} tokens in the index, {} in a table",
                                        found->second.page, found->second.n_tokens,
                                        table.layout().n_filled(i)));
    }
  }
  return Status::ok();
}

Status check_entry(const PrefixIndex::Entry& entry, PageHolders& holders) {
  Holders& holder = holders[static_cast<size_t>(entry.page)];
  if (holder.in_index) {
    return internal_error(fmt::format("page {}: in the index under two keys", entry.page));
  }
  holder.in_index = true;
  if (entry.n_tokens >= 1 && entry.n_tokens <= kPageTokens) return Status::ok();
  return internal_error(
      fmt::format("page {}: published with {} tokens", entry.page, entry.n_tokens));
}

/// Parents are there, know how many children they have, and are held wherever a child is.
Status check_links(const PrefixIndex& index, const PageHolders& holders) {
  std::unordered_map<PrefixKey, int64_t, ContentKeyHash> n_children;
  for (const auto& [key, entry] : index.entries()) {
    if (entry.is_first) continue;
    const auto before = index.entries().find(entry.parent);
    if (before == index.entries().end()) {
      return internal_error(fmt::format("page {}: cached without the page before it", entry.page));
    }
    ++n_children[entry.parent];
    const int32_t page_before = before->second.page;
    if (holders[static_cast<size_t>(entry.page)].n_tables >
        holders[static_cast<size_t>(page_before)].n_tables) {
      return internal_error(fmt::format("page {}: held by more tables than page {} before it",
                                        entry.page, page_before));
    }
  }
  for (const auto& [key, entry] : index.entries()) {
    if (entry.n_children != n_children[key]) {
      return internal_error(fmt::format("page {}: {} children counted, {} there", entry.page,
                                        entry.n_children, n_children[key]));
    }
  }
  if (index.stats().broken_links == 0) return Status::ok();
  return internal_error("index: an entry's parent was not the key before it");
}

Status check_page(const PagePool& pool, int32_t page, const Holders& holder, int64_t n_free) {
  const int64_t n_holders = holder.n_tables + (holder.in_index ? 1 : 0);
  if (pool.references(page) != n_holders) {
    return internal_error(
        fmt::format("page {}: {} references, {} tables and {} index entries hold "
                    "it",
                    page, pool.references(page), holder.n_tables, holder.in_index ? 1 : 0));
  }
  if (n_free != (n_holders == 0 ? 1 : 0)) {
    return internal_error(
        fmt::format("page {}: {} times free, with {} holders", page, n_free, n_holders));
  }
  if (pool.published(page) != holder.in_index) {
    return internal_error(fmt::format("page {}: marked as published {}, in the index {}", page,
                                      pool.published(page), holder.in_index));
  }
  if (holder.n_writers > 0 && n_holders > 1) {
    return internal_error(
        fmt::format("page {}: can be written and has {} holders", page, n_holders));
  }
  if (n_holders > 0 && pool.type(page).dtype != pool.geometry().dtype) {
    return internal_error(fmt::format("page {}: holds {} in a pool of {}", page,
                                      dtype_name(pool.type(page).dtype),
                                      dtype_name(pool.geometry().dtype)));
  }
  return Status::ok();
}

}  // namespace

Status check_invariants(const PagePool& pool, const PrefixIndex& index,
                        std::span<const SequencePages* const> tables) {
  if (&index.pool() != &pool) return internal_error("index: of another pool");
  PageHolders holders(static_cast<size_t>(pool.n_pages()));
  for (const SequencePages* table : tables) {
    TRIPTYCH_RETURN_IF_ERROR(check_table(pool, *table, holders));
    TRIPTYCH_RETURN_IF_ERROR(check_waste(table->layout()));
    TRIPTYCH_RETURN_IF_ERROR(check_published(index, *table));
  }
  for (const auto& [key, entry] : index.entries()) {
    TRIPTYCH_RETURN_IF_ERROR(check_entry(entry, holders));
  }
  TRIPTYCH_RETURN_IF_ERROR(check_links(index, holders));

  std::vector<int64_t> n_free(holders.size());
  for (const int32_t page : pool.free_pages()) ++n_free[static_cast<size_t>(page)];
  int64_t n_reclaimable = 0;
  for (int32_t page = 0; page < pool.n_pages(); ++page) {
    const Holders& holder = holders[static_cast<size_t>(page)];
    TRIPTYCH_RETURN_IF_ERROR(check_page(pool, page, holder, n_free[static_cast<size_t>(page)]));
    n_reclaimable += holder.in_index && holder.n_tables == 0 ? 1 : 0;
  }
  if (n_reclaimable != pool.n_reclaimable()) {
    return internal_error(fmt::format("pool: {} reclaimable pages counted, {} there",
                                      pool.n_reclaimable(), n_reclaimable));
  }
  return Status::ok();
}

}  // namespace triptych
