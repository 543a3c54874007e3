#include "cache/encoder/encoder_cache.h"

#include <fmt/format.h>

#include <algorithm>

namespace triptych {

std::optional<double> EncoderCounts::hit_rate() const {
  if (total() == 0) return std::nullopt;
  return static_cast<double>(hits + joined) / static_cast<double>(total());
}

EncoderLookup EncoderCache::look_up(const EncodeUnit& unit, uint64_t requester) {
  if (const auto found = entries_.find(unit.id); found != entries_.end()) {
    Entry& entry = found->second;
    if (entry.in_flight()) {
      entry.waiters.push_back(requester);
      return {EncoderState::kInFlight, nullptr};
    }
    touch(unit.id, entry);
    return {EncoderState::kHit, entry.features};
  }
  const bool has_room = make_room(unit.n_bytes);
  Entry entry{.features = nullptr, .n_bytes = has_room ? unit.n_bytes : 0, .cost = unit.cost};
  reserved_ += entry.n_bytes;
  entries_.emplace(unit.id, std::move(entry));
  return {EncoderState::kBegin, nullptr};
}

std::vector<EncoderLookup> EncoderCache::find_or_begin(std::span<const EncodeUnit> units,
                                                       Modality modality, uint64_t requester) {
  std::vector<EncoderLookup> found;
  found.reserve(units.size());
  for (const EncodeUnit& unit : units) found.push_back(look_up(unit, requester));
  const auto count = [&found](EncoderState state) {
    return std::count_if(found.begin(), found.end(),
                         [state](const EncoderLookup& lookup) { return lookup.state == state; });
  };
  const auto n_begun = static_cast<size_t>(count(EncoderState::kBegin));
  EncoderCounts& counts = stats_.items[static_cast<size_t>(modality)];
  if (n_begun == 0) {
    ++(count(EncoderState::kInFlight) == 0 ? counts.hits : counts.joined);
  } else {
    ++(n_begun < units.size() ? counts.partial : counts.misses);
  }
  return found;
}

EncoderLookup EncoderCache::find_or_begin(const EncodeUnit& unit, Modality modality,
                                          uint64_t requester) {
  return find_or_begin(std::span(&unit, 1), modality, requester).front();
}

bool EncoderCache::contains(const MediaId& id) const {
  const auto found = entries_.find(id);
  return found != entries_.end() && !found->second.in_flight();
}

Result<EncoderCache::Finished> EncoderCache::finish(const MediaId& id, Tensor features) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || !found->second.in_flight()) {
    return failed_precondition("encoder cache: features that nobody began to encode");
  }
  Entry& entry = found->second;
  reserved_ -= entry.n_bytes;
  entry.n_bytes = static_cast<uint64_t>(features.n_bytes());
  Finished finished{.features = std::make_shared<const Tensor>(std::move(features)),
                    .waiters = std::exchange(entry.waiters, {})};
  finished.cached = make_room(entry.n_bytes);
  if (finished.cached) {
    stored_ += entry.n_bytes;
    entry.features = finished.features;
    entry.rank = clock_.touch(entry.cost, static_cast<double>(entry.n_bytes));
    ranks_.insert({entry.rank, id});
  } else {
    ++stats_.uncached;
    entries_.erase(found);
  }
  return finished;
}

std::vector<uint64_t> EncoderCache::fail(const MediaId& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || !found->second.in_flight()) return {};
  std::vector<uint64_t> waiters = std::move(found->second.waiters);
  reserved_ -= found->second.n_bytes;
  entries_.erase(found);
  ++stats_.failed;
  return waiters;
}

void EncoderCache::leave(const MediaId& id, uint64_t requester) {
  if (const auto found = entries_.find(id); found != entries_.end()) {
    std::erase(found->second.waiters, requester);
  }
}

void EncoderCache::clear() {
  for (const auto& [rank, id] : ranks_) entries_.erase(id);
  ranks_.clear();
  stored_ = 0;
}

uint64_t EncoderCache::in_use_bytes() const {
  uint64_t n_bytes = 0;
  for (const auto& [id, entry] : entries_) {
    if (!entry.in_flight() && entry.in_use()) n_bytes += entry.n_bytes;
  }
  return n_bytes;
}

void EncoderCache::touch(const MediaId& id, Entry& entry) {
  ranks_.erase({entry.rank, id});
  entry.rank = clock_.touch(entry.cost, static_cast<double>(entry.n_bytes));
  ranks_.insert({entry.rank, id});
}

bool EncoderCache::make_room(uint64_t n_bytes) {
  if (n_bytes > budget_ - reserved_) return false;
  const uint64_t most_stored = budget_ - reserved_ - n_bytes;
  uint64_t left = stored_;
  std::vector<MediaId> leaving;
  for (auto candidate = ranks_.begin(); left > most_stored && candidate != ranks_.end();
       ++candidate) {
    const Entry& entry = entries_.find(candidate->second)->second;
    if (entry.in_use()) continue;
    left -= entry.n_bytes;
    leaving.push_back(candidate->second);
  }
  if (left > most_stored) return false;
  for (const MediaId& id : leaving) {
    const auto found = entries_.find(id);
    clock_.evicted(found->second.rank);
    ranks_.erase({found->second.rank, id});
    entries_.erase(found);
    ++stats_.evicted;
  }
  stored_ = left;
  return true;
}

Status EncoderCache::check_invariants() const {
  uint64_t stored = 0;
  uint64_t reserved = 0;
  size_t n_ranked = 0;
  for (const auto& [id, entry] : entries_) {
    (entry.in_flight() ? reserved : stored) += entry.n_bytes;
    if (entry.in_flight()) continue;
    if (!entry.waiters.empty()) return internal_error("encoder cache: waiting for what is there");
    if (static_cast<uint64_t>(entry.features->n_bytes()) != entry.n_bytes) {
      return internal_error("encoder cache: an entry's bytes are not its tensor's");
    }
    n_ranked += ranks_.contains({entry.rank, id}) ? 1 : 0;
  }
  if (stored != stored_ || reserved != reserved_) {
    return internal_error(fmt::format("encoder cache: {} + {} bytes counted, {} + {} there",
                                      stored_, reserved_, stored, reserved));
  }
  if (stored + reserved > budget_) {
    return internal_error(
        fmt::format("encoder cache: {} bytes over a budget of {}", stored + reserved, budget_));
  }
  if (n_ranked != ranks_.size() ||
      entries_.size() - n_ranked != static_cast<size_t>(n_in_flight())) {
    return internal_error("encoder cache: the order of eviction is not that of the entries");
  }
  return Status::ok();
}

}  // namespace triptych
