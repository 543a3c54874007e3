#include "cache/kv/page_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "ops/attention.h"

namespace triptych {

namespace {

Status check_run(const MediaRun& run, int64_t before, int64_t n_tokens) {
  if (run.length >= 1 && run.position >= before && run.length <= n_tokens - run.position) {
    return Status::ok();
  }
  return invalid_argument(
      fmt::format("media run of {} tokens at position {} of a sequence of {}: runs must hold "
                  "tokens, stand in order and not overlap (the one before ends at {})",
                  run.length, run.position, n_tokens, before));
}

}  // namespace

Result<PageLayout> PageLayout::plan(int64_t n_tokens, std::span<const MediaRun> runs) {
  if (n_tokens < 0 || n_tokens > INT32_MAX) {
    return out_of_range(fmt::format("a sequence of {} tokens has no page layout", n_tokens));
  }
  PageLayout layout;
  layout.pages_.reserve(static_cast<size_t>(ceil_div(n_tokens, kPageTokens)) + 2 * runs.size());
  layout.page_begin_.reserve(layout.pages_.capacity() + 1);
  int64_t position = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const MediaRun& run = runs[i];
    TRIPTYCH_RETURN_IF_ERROR(check_run(run, position, n_tokens));
    layout.append(run.position - position, {});
    layout.append(run.length, {.modality = run.modality, .run = static_cast<int32_t>(i)});
    position = run.position + run.length;
  }
  layout.append(n_tokens - position, {});
  return layout;
}

void PageLayout::append(int64_t n, Page page) {
  for (; n > 0; n -= kPageTokens) {
    pages_.push_back(page);
    page_begin_.push_back(page_begin_.back() + static_cast<int32_t>(std::min(n, kPageTokens)));
    if (page.run >= 0) ++page.index_in_run;
  }
}

Status PageLayout::extend(int64_t n_tokens) {
  if (n_tokens < 0 || n_tokens > INT32_MAX - this->n_tokens()) {
    return out_of_range(
        fmt::format("{} more tokens behind {} have no page layout", n_tokens, this->n_tokens()));
  }
  if (n_pages() > 0 && run(n_pages() - 1) < 0) {
    const int64_t room = kPageTokens - n_filled(n_pages() - 1);
    const int64_t fitting = std::min(room, n_tokens);
    page_begin_.back() += static_cast<int32_t>(fitting);
    n_tokens -= fitting;
  }
  append(n_tokens, {});
  return Status::ok();
}

bool PageLayout::is_closed(int64_t page) const {
  return page + 1 < n_pages() || run(page) >= 0 || n_filled(page) == kPageTokens;
}

int64_t PageLayout::page_of(int64_t position) const {
  // Every page but the last is followed by a larger begin, so the first begin beyond is the next's.
  const auto next = std::upper_bound(page_begin_.begin(), page_begin_.end(), position);
  return next - page_begin_.begin() - 1;
}

int64_t PageLayout::whole_runs(int64_t n_pages) const {
  if (n_pages >= this->n_pages() || run(n_pages) < 0) return n_pages;
  return n_pages - index_in_run(n_pages);
}

int64_t PageLayout::n_wasted() const {
  int64_t n = 0;
  for (int64_t i = 0; i < n_pages(); ++i) {
    if (is_closed(i)) n += kPageTokens - n_filled(i);
  }
  return n;
}

}  // namespace triptych
