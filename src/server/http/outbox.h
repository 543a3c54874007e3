#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/http/http.h"

namespace triptych::http {

/// What an answer has put out and its connection has not taken yet. Thread-safe.
class Outbox {
 public:
  /// `wake` tells the connection that there is something to take. It must not block nor call back.
  Outbox(uint64_t most_bytes, std::function<void()> wake)
      : most_bytes_(most_bytes), wake_(std::move(wake)) {}

  // For the one who answers.
  void respond(Response response);
  void start_stream(Response head);
  bool write(std::string_view piece);
  void finish();
  void on_gone(std::function<void()> gone);
  /// Nobody will answer any more: `make_error` makes the answer unless one has begun, which is cut
  /// then.
  void abandon(const std::function<Response()>& make_error);

  /// For the connection.
  struct Ready {
    std::optional<Response> head;  ///< once, with the first piece or the whole as its body
    bool streamed = false;         ///< the head begins a stream
    std::string piece;             ///< of a stream, behind its head
    bool ended = false;
    bool broken = false;  ///< the stream ends here without having been finished

    bool anything() const { return head || !piece.empty() || ended; }
  };
  Ready take();
  /// The connection takes no more; unless all was `delivered`, the client has gone.
  void close(bool delivered);

 private:
  void wake() const {
    if (wake_) wake_();
  }

  const uint64_t most_bytes_;
  std::function<void()> wake_;  ///< null when closed
  std::mutex mutex_;
  std::optional<Response> head_;
  std::string pieces_;
  std::function<void()> gone_callback_;
  bool begun_ = false;
  bool streamed_ = false;
  bool ended_ = false;
  bool broken_ = false;
  bool gone_ = false;
};

/// What the handler holds of an answer.
class OutboxHandle final : public Exchange {
 public:
  OutboxHandle(std::shared_ptr<Outbox> outbox, std::function<Response()> make_error)
      : outbox_(std::move(outbox)), make_error_(std::move(make_error)) {}
  ~OutboxHandle() override { outbox_->abandon(make_error_); }

  void respond(Response response) override { outbox_->respond(std::move(response)); }
  void start_stream(Response head) override { outbox_->start_stream(std::move(head)); }
  bool write(std::string_view piece) override { return outbox_->write(piece); }
  void finish() override { outbox_->finish(); }
  void on_gone(std::function<void()> gone) override { outbox_->on_gone(std::move(gone)); }

 private:
  std::shared_ptr<Outbox> outbox_;
  std::function<Response()> make_error_;
};

}  // namespace triptych::http
