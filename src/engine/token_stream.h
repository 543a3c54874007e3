#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "engine/engine.h"

namespace triptych {

/// The events of one request, from the engine's thread to one reader.
class TokenStream {
 public:
  explicit TokenStream(uint64_t id) : id_(id) {}
  uint64_t id() const { return id_; }

  /// The next event, as soon as there is one; nothing after `timeout`, and at once behind the last
  /// event.
  std::optional<SequenceEvent> next(std::chrono::milliseconds timeout);
  /// The next event if there is one.
  std::optional<SequenceEvent> poll() { return next(std::chrono::milliseconds(0)); }

  /// For the producer.
  void push(SequenceEvent event);

 private:
  const uint64_t id_;
  std::mutex mutex_;
  bool ended_ = false;  ///< the last event has been read
  std::condition_variable ready_;
  std::deque<SequenceEvent> events_;
};

}  // namespace triptych
