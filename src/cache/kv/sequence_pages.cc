#include "cache/kv/sequence_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace triptych {

SequencePages::SequencePages(PrefixIndex& index, PageLayout layout,
                             const std::optional<PrefixKey>& root, std::vector<MediaId> kept)
    : index_(&index), layout_(std::move(layout)), kept_(std::move(kept)) {
  if (root) chain_.emplace(*root);
}

SequencePages::SequencePages(SequencePages&& other) noexcept
    : index_(other.index_),
      layout_(std::move(other.layout_)),
      kept_(std::move(other.kept_)),
      chain_(std::move(other.chain_)),
      pages_(std::exchange(other.pages_, {})),
      n_stored_(std::exchange(other.n_stored_, 0)),
      n_published_(std::exchange(other.n_published_, 0)),
      may_publish_(other.may_publish_) {}

SequencePages& SequencePages::operator=(SequencePages&& other) noexcept {
  if (this == &other) return *this;
  release();
  index_ = other.index_;
  layout_ = std::move(other.layout_);
  kept_ = std::move(other.kept_);
  chain_ = std::move(other.chain_);
  pages_ = std::exchange(other.pages_, {});
  n_stored_ = std::exchange(other.n_stored_, 0);
  n_published_ = std::exchange(other.n_published_, 0);
  may_publish_ = other.may_publish_;
  return *this;
}

Result<int64_t> SequencePages::longest_prefix(std::span<const int32_t> ids) {
  if (!chain_) return 0;
  TRIPTYCH_RETURN_IF_ERROR(chain_->extend(layout_, ids, kept_));
  // Pages that end before the last token: the next token is drawn from that one's row.
  const int64_t most = n_tokens() > 0 ? layout_.page_of(n_tokens() - 1) : 0;
  const auto asked = static_cast<size_t>(std::min(most, chain_->size()));
  return layout_.whole_runs(index_->longest_run(chain_->root(), chain_->keys().first(asked)));
}

Result<int64_t> SequencePages::n_cached(std::span<const int32_t> ids) {
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t n, longest_prefix(ids));
  return layout_.begin(n);
}

Result<int64_t> SequencePages::adopt(std::span<const int32_t> ids) {
  if (!pages_.empty()) {
    return internal_error("a cached prefix can only be taken into an empty table");
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t n, longest_prefix(ids));
  if (!chain_) return 0;
  pages_ = index_->match(chain_->root(), chain_->keys().first(static_cast<size_t>(n)));
  n_stored_ = layout_.begin(n);
  n_published_ = n;
  return n_stored_;
}

int64_t SequencePages::n_pages_missing(int64_t n_tokens) const {
  return std::max<int64_t>(layout_.pages_for(n_tokens) - static_cast<int64_t>(pages_.size()), 0);
}

Status SequencePages::reserve(int64_t n_tokens) {
  if (n_tokens > this->n_tokens()) {
    return internal_error(
        fmt::format("pages for {} tokens of a sequence that has {}", n_tokens, this->n_tokens()));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<int32_t> more,
                            index_->allocate(n_pages_missing(n_tokens)));
  for (const int32_t page : more) {
    const auto place = static_cast<int64_t>(pages_.size());
    index_->pool().set_modality(page, layout_.modality(place));
    pages_.push_back(page);
  }
  return Status::ok();
}

Status SequencePages::commit(int64_t n) {
  if (n < 0 || n > n_reserved() - n_stored_) {
    return internal_error(
        fmt::format("{} tokens stored behind {}, with pages for {}", n, n_stored_, n_reserved()));
  }
  n_stored_ += n;
  return Status::ok();
}

void SequencePages::roll_back() {
  const auto n_kept = static_cast<size_t>(layout_.pages_for(n_stored_));
  while (pages_.size() > n_kept) {
    index_->pool().drop(pages_.back());
    pages_.pop_back();
  }
}

bool SequencePages::is_complete(int64_t i) const {
  return layout_.is_closed(i) && layout_.begin(i + 1) <= n_stored_;
}

Status SequencePages::publish(std::span<const int32_t> ids) {
  const auto n_pages = static_cast<int64_t>(pages_.size());
  if (!chain_ || !may_publish_) return Status::ok();
  if (n_published_ == n_pages || !is_complete(n_published_)) return Status::ok();
  TRIPTYCH_RETURN_IF_ERROR(chain_->extend(layout_, ids, kept_));
  for (; n_published_ < n_pages && is_complete(n_published_); ++n_published_) {
    const int64_t i = n_published_;
    int32_t& page = pages_[static_cast<size_t>(i)];
    const Result<int32_t> held =
        index_->publish({.key = chain_->key(i),
                         .parent = chain_->parent(i),
                         .page = page,
                         .page_before = i == 0 ? -1 : pages_[static_cast<size_t>(i - 1)],
                         .position = layout_.begin(i),
                         .n_tokens = layout_.n_filled(i)});
    if (!held.is_ok()) {
      // The index was cleared under this sequence. Publishing behind somebody else's copy of the
      // page before would let that copy be evicted first, so this table publishes no more.
      may_publish_ = false;
      return Status::ok();
    }
    page = *held;
  }
  return Status::ok();
}

Result<SequencePages> SequencePages::fork(const CopyPage& copy) const {
  PagePool& pool = index_->pool();
  SequencePages twin(*index_, layout_, std::nullopt, kept_);
  twin.chain_ = chain_;
  twin.may_publish_ = may_publish_;
  const int64_t n_held = layout_.pages_for(n_stored_);
  for (int64_t i = 0; i < n_held; ++i) {
    const int32_t page = pages_[static_cast<size_t>(i)];
    if (is_complete(i)) {
      pool.share(page);
      twin.pages_.push_back(page);
      continue;
    }
    TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<int32_t> own, index_->allocate(1));
    pool.set_modality(own.front(), layout_.modality(i));
    twin.pages_.push_back(own.front());
    copy(pool.bytes(page), pool.bytes(own.front()));
  }
  twin.n_stored_ = n_stored_;
  twin.n_published_ = n_published_;
  return twin;
}

void SequencePages::release() {
  for (const int32_t page : pages_) index_->pool().drop(page);
  pages_.clear();
  n_stored_ = 0;
  n_published_ = 0;
  may_publish_ = true;
}

}  // namespace triptych
