#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/multimodal_engine.h"

namespace triptych {

/// An answer on its way to whoever asked. Called by the pump's thread alone.
class PumpedAnswer {
 public:
  virtual ~PumpedAnswer() = default;
  virtual void take(const SequenceEvent& event) = 0;
  /// What has been taken since the last call may go out: a step's events at once.
  virtual void flush() = 0;
};

/// Brings the events of many requests from their streams to their answers, on one thread that
/// sleeps while there are none. Thread-safe.
class AnswerPump {
 public:
  AnswerPump();
  /// Answers that have not ended are dropped.
  ~AnswerPump();
  AnswerPump(const AnswerPump&) = delete;
  AnswerPump& operator=(const AnswerPump&) = delete;

  /// For MultiModalEngine::submit of what is then given to add().
  const std::shared_ptr<EventSignal>& signal() const { return signal_; }
  void add(std::shared_ptr<TokenStream> stream, std::unique_ptr<PumpedAnswer> answer);

 private:
  struct Open {
    std::shared_ptr<TokenStream> stream;
    std::unique_ptr<PumpedAnswer> answer;
  };
  void run();
  static bool pump(Open& open);

  const std::shared_ptr<EventSignal> signal_ = std::make_shared<EventSignal>();
  std::mutex mutex_;
  std::list<Open> added_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace triptych
