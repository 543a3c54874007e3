#include "prep/media_flights.h"

namespace triptych {
namespace {

// Those who wait must hear of the end whatever happens.
Result<MediaFlights::Media> call(const MediaFlights::Work& work) {
  try {
    return work();
  } catch (...) {
    return status_of_exception("preparing a media item");
  }
}

}  // namespace

Result<MediaFlights::Media> MediaFlights::run(const Key& key, const Work& work) {
  std::unique_lock lock(mutex_);
  const auto [place, first] = flights_.try_emplace(key);
  if (first) place->second = std::make_shared<Flight>();
  const std::shared_ptr<Flight> flight = place->second;
  if (first) {
    lock.unlock();
    Result<Media> result = call(work);
    lock.lock();
    flight->result = std::move(result);
    flight->landed = true;
    flights_.erase(key);
    landed_.notify_all();
  } else {
    ++n_waiting_;
    landed_.wait(lock, [&] { return flight->landed; });
    --n_waiting_;
  }
  return flight->result;
}

int64_t MediaFlights::n_waiting() const {
  const std::lock_guard lock(mutex_);
  return n_waiting_;
}

}  // namespace triptych
