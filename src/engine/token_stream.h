#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/engine.h"

namespace triptych {

/// Tells one reader that something came in any of its streams, so that it can sleep meanwhile.
class EventSignal {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// Until something has come since the last wait; false when nothing did until `deadline`.
  bool wait_until(Deadline deadline);
  void raise();

 private:
  std::mutex mutex_;
  std::condition_variable raised_;
  bool is_raised_ = false;
};

/// The events of one request, from the engine's thread to one reader.
class TokenStream {
 public:
  /// Streams that share a signal have the same reader.
  TokenStream(uint64_t id, std::shared_ptr<EventSignal> signal)
      : id_(id), signal_(std::move(signal)) {}
  uint64_t id() const { return id_; }

  /// The next event, as soon as there is one; nothing after `timeout`, and at once behind the last
  /// event.
  std::optional<SequenceEvent> next(std::chrono::milliseconds timeout);
  /// The next event if there is one.
  std::optional<SequenceEvent> poll();

  /// For the producer. What is pushed stays unnoticed until `signal` is raised.
  void push(SequenceEvent event);
  const std::shared_ptr<EventSignal>& signal() const { return signal_; }

 private:
  const uint64_t id_;
  const std::shared_ptr<EventSignal> signal_;
  std::mutex mutex_;
  bool ended_ = false;  ///< the last event has been read
  std::deque<SequenceEvent> events_;
};

}  // namespace triptych
