#include "cache/kv/prefix_key.h"

#include <fmt/format.h>

#include "cache/framed_hash.h"

namespace triptych {

PrefixKey root_key(const PrefixScope& scope) {
  return FramedHash("kv root 1").add(scope.model).add(scope.tenant).hash();
}

PrefixKey text_page_key(const PrefixKey& parent, std::span<const int32_t> ids) {
  return FramedHash("kv text 1").add(parent).add(std::as_bytes(ids)).hash();
}

PrefixKey media_page_key(const PrefixKey& parent, const MediaId& kept, int64_t index_in_run,
                         int64_t n_rows) {
  return FramedHash("kv media 1").add(parent).add(kept).add(index_in_run).add(n_rows).hash();
}

Status PrefixChain::extend(const PageLayout& layout, std::span<const int32_t> ids,
                           std::span<const MediaId> kept) {
  if (static_cast<int64_t>(ids.size()) != layout.n_tokens()) {
    return internal_error(fmt::format("prefix keys of a sequence of {} tokens from {} ids",
                                      layout.n_tokens(), ids.size()));
  }
  pages_.reserve(static_cast<size_t>(layout.n_pages()));
  for (int64_t page = size(); page < layout.n_pages() && layout.is_closed(page); ++page) {
    const int64_t run = layout.run(page);
    if (run >= static_cast<int64_t>(kept.size())) {
      return internal_error(
          fmt::format("prefix key of media run {}, but {} have an id", run, kept.size()));
    }
    const auto begin = static_cast<size_t>(layout.begin(page));
    const auto n = static_cast<size_t>(layout.n_filled(page));
    pages_.push_back(run < 0 ? text_page_key(parent(page), ids.subspan(begin, n))
                             : media_page_key(parent(page), kept[static_cast<size_t>(run)],
                                              layout.index_in_run(page), layout.n_filled(page)));
  }
  return Status::ok();
}

}  // namespace triptych
