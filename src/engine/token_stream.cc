#include "engine/token_stream.h"

namespace triptych {

std::optional<SequenceEvent> TokenStream::next(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  if (ended_) return std::nullopt;
  if (!ready_.wait_for(lock, timeout, [&] { return !events_.empty(); })) return std::nullopt;
  SequenceEvent event = std::move(events_.front());
  events_.pop_front();
  ended_ = event.ends_request;
  return event;
}

void TokenStream::push(SequenceEvent event) {
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  ready_.notify_one();
}

}  // namespace triptych
