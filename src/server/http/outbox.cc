#include "server/http/outbox.h"

#include <utility>

namespace triptych::http {

// The connection is woken with the mutex held: it cannot be closed meanwhile.

void Outbox::respond(Response response) {
  const std::lock_guard lock(mutex_);
  if (begun_) return;
  head_ = std::move(response);
  begun_ = ended_ = true;
  wake();
}

void Outbox::start_stream(Response head) {
  const std::lock_guard lock(mutex_);
  if (begun_) return;
  head_ = std::move(head);
  begun_ = streamed_ = true;
  wake();
}

bool Outbox::write(std::string_view piece) {
  const std::lock_guard lock(mutex_);
  if (gone_ || ended_ || !streamed_) return false;
  if (pieces_.size() + piece.size() > most_bytes_) {
    broken_ = ended_ = true;
    pieces_.clear();
  } else {
    pieces_ += piece;
  }
  wake();
  return !broken_;
}

void Outbox::finish() {
  const std::lock_guard lock(mutex_);
  if (!streamed_ || ended_) return;
  ended_ = true;
  wake();
}

void Outbox::on_gone(std::function<void()> gone) {
  {
    const std::lock_guard lock(mutex_);
    if (!gone_) {
      gone_callback_ = std::move(gone);
      return;
    }
  }
  gone();
}

void Outbox::abandon(const std::function<Response()>& make_error) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  broken_ = begun_;
  if (!begun_) {
    try {
      head_ = make_error();
    } catch (...) {  // a destructor calls: without memory for an answer, the connection is cut
      broken_ = true;
    }
  }
  begun_ = ended_ = true;
  wake();
}

Outbox::Ready Outbox::take() {
  const std::lock_guard lock(mutex_);
  Ready out;
  out.head = std::exchange(head_, std::nullopt);
  out.streamed = streamed_;
  out.piece = std::exchange(pieces_, {});
  out.ended = ended_;
  out.broken = broken_;
  return out;
}

void Outbox::close(bool delivered) {
  std::function<void()> gone;
  {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    wake_ = nullptr;
    gone = std::exchange(gone_callback_, nullptr);
  }
  if (gone && !delivered) gone();
}

}  // namespace triptych::http
