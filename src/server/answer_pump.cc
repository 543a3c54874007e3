#include "server/answer_pump.h"

#include <chrono>
#include <utility>

#include "base/log.h"

namespace triptych {

constexpr std::chrono::seconds kLook(60);  ///< the signal is raised for all that comes

AnswerPump::AnswerPump() : thread_([this] { run(); }) {}

AnswerPump::~AnswerPump() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  signal_->raise();
  thread_.join();
}

void AnswerPump::add(std::shared_ptr<TokenStream> stream, std::unique_ptr<PumpedAnswer> answer) {
  {
    const std::lock_guard lock(mutex_);
    added_.push_back({std::move(stream), std::move(answer)});
  }
  signal_->raise();  // its first events may have come before it was here
}

void AnswerPump::run() {
  std::list<Open> open;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      open.splice(open.end(), added_);
    }
    std::erase_if(open, pump);
    signal_->wait_until(std::chrono::steady_clock::now() + kLook);
  }
}

// Takes what has come; true when that was the last of it, or the answer cannot go on.
bool AnswerPump::pump(Open& open) {
  try {
    bool took = false;
    bool ended = false;
    while (const std::optional<SequenceEvent> event = open.stream->poll()) {
      open.answer->take(*event);
      took = true;
      ended = event->ends_request;
    }
    if (took) open.answer->flush();
    return ended;
  } catch (...) {  // of this answer alone: the others go on
    log_error(status_of_exception("writing an answer").message());
    return true;
  }
}

}  // namespace triptych
