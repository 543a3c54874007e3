#include "cache/kv/prefix_index.h"

#include <fmt/format.h>

namespace triptych {

int64_t PrefixIndex::longest_run(const PrefixKey& parent, std::span<const PrefixKey> keys) const {
  const PrefixKey* before = &parent;
  int64_t n = 0;
  for (const PrefixKey& key : keys) {
    const auto found = entries_.find(key);
    // A key covers its parent's, so the second test can only fail if the index is damaged.
    if (found == entries_.end() || found->second.parent != *before) break;
    before = &key;
    ++n;
  }
  return n;
}

std::vector<int32_t> PrefixIndex::match(const PrefixKey& parent, std::span<const PrefixKey> keys) {
  const auto n = static_cast<size_t>(longest_run(parent, keys));
  ++stats_.lookups;
  stats_.pages_asked += static_cast<int64_t>(keys.size());
  if (n < keys.size() && entries_.contains(keys[n])) ++stats_.broken_links;
  std::vector<int32_t> pages;
  pages.reserve(n);
  for (const PrefixKey& key : keys.first(n)) {
    Entry& entry = entries_.find(key)->second;
    touch(key, entry);
    pool_->share(entry.page);
    pages.push_back(entry.page);
    ++stats_.pages_hit[static_cast<size_t>(pool_->type(entry.page).modality)];
    stats_.tokens_saved += entry.n_tokens;
  }
  return pages;
}

double PrefixIndex::page_bytes(int32_t page) const {
  return static_cast<double>(pool_->bytes(page).size());
}

void PrefixIndex::touch(const PrefixKey& key, Entry& entry) {
  const bool is_leaf = entry.n_children == 0;
  if (is_leaf) leaves_.erase({entry.rank, key});
  entry.rank = clock_.touch(entry.cost, page_bytes(entry.page));
  if (is_leaf) leaves_.insert({entry.rank, key});
}

Result<int32_t> PrefixIndex::publish(const PublishedPage& offered) {
  const bool is_first = offered.page_before < 0;
  const auto before = entries_.find(offered.parent);
  if (!is_first && (before == entries_.end() || before->second.page != offered.page_before)) {
    return failed_precondition("prefix index: it does not hold the page before the one offered");
  }
  if (const auto found = entries_.find(offered.key); found != entries_.end()) {
    Entry& entry = found->second;
    touch(offered.key, entry);
    if (entry.page != offered.page) {
      ++stats_.duplicates;
      pool_->share(entry.page);
      pool_->drop(offered.page);
    }
    return entry.page;
  }
  if (!is_first && before->second.n_children++ == 0) {
    leaves_.erase({before->second.rank, offered.parent});
  }
  pool_->share(offered.page);
  pool_->set_published(offered.page, true);
  const Modality modality = pool_->type(offered.page).modality;
  Entry entry{.parent = offered.parent,
              .is_first = is_first,
              .page = offered.page,
              .n_tokens = offered.n_tokens,
              .cost = cost_.of(modality, offered.position, offered.n_tokens)};
  entry.rank = clock_.touch(entry.cost, page_bytes(offered.page));
  leaves_.insert({entry.rank, offered.key});
  entries_.emplace(offered.key, entry);
  ++stats_.published;
  return offered.page;
}

void PrefixIndex::forget(Entries::iterator entry) {
  const Entry gone = entry->second;
  leaves_.erase({gone.rank, entry->first});
  entries_.erase(entry);
  pool_->set_published(gone.page, false);
  pool_->drop(gone.page);
  if (gone.is_first) return;
  const auto before = entries_.find(gone.parent);
  if (before != entries_.end() && --before->second.n_children == 0) {
    leaves_.insert({before->second.rank, gone.parent});
  }
}

int64_t PrefixIndex::evict(int64_t n_pages) {
  int64_t n = 0;
  auto candidate = leaves_.begin();
  while (n < n_pages && candidate != leaves_.end()) {
    const auto found = entries_.find(candidate->second);
    // Leaves that sequences hold are stepped over: at most one for each of them.
    if (pool_->references(found->second.page) > 1) {
      ++candidate;
      continue;
    }
    clock_.evicted(found->second.rank);
    forget(found);
    ++stats_.evicted;
    ++n;
    candidate = leaves_.begin();  // the page before may have become the lowest leaf
  }
  return n;
}

Result<std::vector<int32_t>> PrefixIndex::allocate(int64_t n_pages) {
  if (n_pages > n_available()) {
    return resource_exhausted(fmt::format(
        "KV cache: {} more pages of {} tokens are needed; of {} are {} free and {} "
        "more hold prefixes that nobody uses",
        n_pages, kPageTokens, pool_->n_pages(), pool_->n_free(), pool_->n_reclaimable()));
  }
  evict(n_pages - pool_->n_free());
  return pool_->allocate(n_pages);
}

void PrefixIndex::clear() {
  for (const auto& [key, entry] : entries_) {
    pool_->set_published(entry.page, false);
    pool_->drop(entry.page);
  }
  entries_.clear();
  leaves_.clear();
}

}  // namespace triptych
