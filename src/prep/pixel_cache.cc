#include "prep/pixel_cache.h"

namespace triptych {
namespace {

uint64_t bytes_of(const PixelCache::Media& media) {
  return static_cast<uint64_t>(media->pixels.n_bytes());
}

}  // namespace

PixelCache::Media PixelCache::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->media;
}

void PixelCache::insert(const Key& key, Media media) {
  const std::lock_guard lock(mutex_);
  if (bytes_of(media) > budget_bytes_ || by_key_.contains(key)) return;
  n_bytes_ += bytes_of(media);
  entries_.push_front({key, std::move(media)});
  by_key_[key] = entries_.begin();
  while (n_bytes_ > budget_bytes_) {
    n_bytes_ -= bytes_of(entries_.back().media);
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

uint64_t PixelCache::n_bytes() const {
  const std::lock_guard lock(mutex_);
  return n_bytes_;
}

}  // namespace triptych
