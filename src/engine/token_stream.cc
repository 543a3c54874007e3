#include "engine/token_stream.h"

namespace triptych {

bool EventSignal::wait_until(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const bool came = raised_.wait_until(lock, deadline, [&] { return is_raised_; });
  is_raised_ = false;
  return came;
}

void EventSignal::raise() {
  {
    const std::lock_guard lock(mutex_);
    is_raised_ = true;
  }
  raised_.notify_one();
}

std::optional<SequenceEvent> TokenStream::next(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    if (auto event = poll()) return event;
    {
      const std::lock_guard lock(mutex_);
      if (ended_) return std::nullopt;
    }
    if (!signal_->wait_until(deadline)) return poll();
  }
}

std::optional<SequenceEvent> TokenStream::poll() {
  const std::lock_guard lock(mutex_);
  if (events_.empty()) return std::nullopt;
  SequenceEvent event = std::move(events_.front());
  events_.pop_front();
  ended_ = event.ends_request;
  return event;
}

void TokenStream::push(SequenceEvent event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
}

}  // namespace triptych
