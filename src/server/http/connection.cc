// A connection is one coroutine on a strand (Boost.Beast and Asio).
#include "server/http/connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>

#include "base/clock.h"
#include "base/log.h"
#include "server/http/outbox.h"

namespace triptych::http {
namespace {

namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using boost::system::error_code;

using PlainStream = beast::basic_stream<net::generic::stream_protocol>;
using TlsStream = beast::ssl_stream<PlainStream>;

constexpr auto kTuple = net::as_tuple(net::use_awaitable);
constexpr std::chrono::milliseconds kLinger(1000);    ///< for a refused client to read why
constexpr std::chrono::milliseconds kLookAgain(200);  ///< whether a client that sent more has gone
constexpr size_t kReadBytes = 64 << 10;
constexpr std::string_view kFault = "the server failed to answer; its log says why";

/// Closes an outbox whatever ends the connection, the end of the server too.
struct Closing {
  std::shared_ptr<Outbox> outbox;
  bool delivered = false;

  ~Closing() { outbox->close(delivered); }
};

/// All but the body.
Request head_of(const bhttp::request<bhttp::string_body>& message, const std::string& client) {
  Request out;
  out.method = std::string(message.method_string());
  const std::string_view target(message.target().data(), message.target().size());
  const size_t query = std::min(target.find('?'), target.size());
  out.path = target.substr(0, query);
  out.query = target.substr(std::min(query + 1, target.size()));
  for (const auto& field : message) {
    out.headers.push_back({std::string(field.name_string()), std::string(field.value())});
  }
  out.client = client;
  return out;
}

template <typename Body>
void set_head(bhttp::response<Body>& out, const Response& head) {
  out.result(static_cast<unsigned>(head.status));
  out.set(bhttp::field::content_type, head.content_type);
  for (const Header& h : head.headers) out.set(h.name, h.value);
}

/// The peer has ended or broken the connection, whatever it sent before.
bool has_gone(int socket) {
  char byte = 0;
  const ssize_t n = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return true;
  pollfd state{socket, POLLRDHUP, 0};
  return ::poll(&state, 1, 0) > 0 && state.revents != 0;
}

template <typename Stream>
class Connection final : public AnyConnection,
                         public std::enable_shared_from_this<Connection<Stream>> {
 public:
  Connection(Stream stream, std::string client, std::shared_ptr<Shared> shared)
      : shared_(std::move(shared)),
        stream_(std::move(stream)),
        wake_(stream_.get_executor(), net::steady_timer::time_point::max()),
        client_(std::move(client)) {}

  net::awaitable<void> run() override {
    // What a peer does while we write shows as an error of an operation, never as an exception.
    co_await net::this_coro::throw_if_cancelled(false);
    if (!co_await begin_tls()) co_return;
    while (co_await serve_one()) {
    }
    co_await end_sending();
    error_code ignored;
    plain().socket().shutdown(net::socket_base::shutdown_both, ignored);
  }

  net::any_io_executor executor() override { return stream_.get_executor(); }

  void close_if_idle() override {
    if (!busy_) plain().cancel();
  }

 private:
  using Parser = bhttp::request_parser<bhttp::string_body>;
  static constexpr bool kTls = std::is_same_v<Stream, TlsStream>;

  /// Where times and the socket are, under TLS or not.
  PlainStream& plain() { return beast::get_lowest_layer(stream_); }

  net::awaitable<bool> begin_tls() {
    if constexpr (kTls) {
      plain().expires_after(shared_->limits.header_time);
      const auto [error] = co_await stream_.async_handshake(net::ssl::stream_base::server, kTuple);
      co_return !error;
    }
    co_return true;
  }

  /// Tells the peer that nothing more comes.
  net::awaitable<void> end_sending() {
    if constexpr (kTls) {
      plain().expires_after(kLinger);
      co_await stream_.async_shutdown(kTuple);
    }
    error_code ignored;
    plain().socket().shutdown(net::socket_base::shutdown_send, ignored);
  }

  /// One request and its answer; false: the connection ends.
  net::awaitable<bool> serve_one() {
    const ServerLimits& limits = shared_->limits;
    if (buffer_.size() == 0) {
      plain().expires_after(limits.idle_time);
      const auto [error, n] = co_await stream_.async_read_some(buffer_.prepare(kReadBytes), kTuple);
      if (error || shared_->draining) co_return false;
      buffer_.commit(n);
    }
    busy_ = true;
    Parser parser;
    parser.header_limit(limits.header_bytes);
    parser.body_limit(limits.body_bytes);
    plain().expires_after(limits.header_time);
    const auto [error, n] = co_await bhttp::async_read_header(stream_, buffer_, parser, kTuple);
    if (error) co_return co_await refuse_unread(error);
    const unsigned version = parser.get().version();
    const bool keep_alive = parser.get().keep_alive() && !shared_->draining;
    const bool head_only = parser.get().method() == bhttp::verb::head;
    Request request = head_of(parser.get(), client_);
    if (const std::optional<Response> refusal = admit(request)) {
      if (!parser.is_done()) co_return co_await refuse(*refusal);
      busy_ = false;
      const bool sent = co_await send_whole(*refusal, version, keep_alive, head_only);
      co_return keep_alive ? sent : false;
    }
    BodyShare share(shared_->bodies);
    if (!co_await read_body(parser, share)) co_return false;
    request.arrived_ms = steady_ms();
    request.body = std::move(parser.get().body());
    auto outbox =
        std::make_shared<Outbox>(limits.stream_backlog_bytes, [self = this->shared_from_this()] {
          net::post(self->executor(), [self] { self->wake_.cancel(); });
        });
    Closing closing{outbox};
    hand_over(std::move(request), outbox);
    closing.delivered = co_await answer(*outbox, version, keep_alive, head_only);
    busy_ = false;
    if (!closing.delivered || shared_->draining) co_return false;
    co_return keep_alive;
  }

  /// The answer to a request that is refused by its head.
  std::optional<Response> admit(const Request& head) const {
    if (!shared_->callbacks.admission) return std::nullopt;
    try {
      return shared_->callbacks.admission(head);
    } catch (...) {
      log_error(status_of_exception("admitting a request").message());
      return shared_->callbacks.refusal(500, kFault);
    }
  }

  /// A long body is worked through on another thread: health must answer meanwhile.
  void hand_over(Request request, const std::shared_ptr<Outbox>& outbox) {
    auto handle = std::make_shared<OutboxHandle>(
        outbox, [shared = shared_] { return shared->callbacks.refusal(500, kFault); });
    if (request.body.size() < shared_->limits.long_body_bytes) {
      return call_handler(*shared_, std::move(request), std::move(handle));
    }
    net::post(shared_->handlers, [shared = shared_, request = std::move(request),
                                  handle = std::move(handle)]() mutable {
      call_handler(*shared, std::move(request), std::move(handle));
    });
  }

  static void call_handler(const Shared& shared, Request request,
                           std::shared_ptr<Exchange> exchange) {
    try {
      shared.callbacks.handler(std::move(request), std::move(exchange));
    } catch (...) {
      log_error(status_of_exception("answering a request").message());
    }
  }

  net::awaitable<bool> read_body(Parser& parser, BodyShare& share) {
    const ServerLimits& limits = shared_->limits;
    const auto length = parser.content_length();
    if (length && !share.hold(*length)) {
      co_return co_await refuse(503, "too many request bodies are being received; try again");
    }
    if (const auto expect = parser.get()[bhttp::field::expect];
        beast::iequals(expect, "100-continue")) {
      bhttp::response<bhttp::empty_body> go_on{bhttp::status::continue_, parser.get().version()};
      const auto [error, n] = co_await bhttp::async_write(stream_, go_on, kTuple);
      if (error) co_return false;
    }
    count_body(parser.get().body().size());
    const auto start = std::chrono::steady_clock::now();
    while (!parser.is_done()) {
      const uint64_t received = parser.get().body().size();
      plain().expires_at(start + limits.body_grace +
                         std::chrono::seconds(received / limits.body_bytes_per_s));
      const auto [error, n] = co_await bhttp::async_read_some(stream_, buffer_, parser, kTuple);
      count_body(parser.get().body().size() - received);
      if (error) co_return co_await refuse_unread(error);
      if (!share.hold(parser.get().body().size())) {
        co_return co_await refuse(503, "too many request bodies are being received; try again");
      }
    }
    co_return true;
  }

  void count_body(uint64_t n_bytes) const {
    ConnectionObserver* observer = shared_->callbacks.observer;
    if (observer != nullptr && n_bytes > 0) observer->body_received(n_bytes);
  }

  /// Answers what could not be read as a request, where the client waits for an answer at all.
  net::awaitable<bool> refuse_unread(error_code error) {
    if (error == bhttp::error::end_of_stream || error == bhttp::error::partial_message) {
      co_return false;
    }
    const ServerLimits& limits = shared_->limits;
    if (error == bhttp::error::header_limit) {
      co_return co_await refuse(
          431, fmt::format("the request's headers are longer than {} bytes", limits.header_bytes));
    }
    if (error == bhttp::error::body_limit) {
      co_return co_await refuse(
          413, fmt::format("the request's body is longer than {} bytes", limits.body_bytes));
    }
    if (error.category() == bhttp::make_error_code(bhttp::error::bad_method).category()) {
      co_return co_await refuse(400, fmt::format("this is no HTTP request: {}", error.message()));
    }
    co_return false;
  }

  /// Answers, lets the client read it although it may still be sending, and ends the connection.
  net::awaitable<bool> refuse(int status, std::string_view reason) {
    co_return co_await refuse(shared_->callbacks.refusal(status, reason));
  }

  net::awaitable<bool> refuse(Response response) {
    co_await send_whole(response, 11, false, false);
    error_code ignored;
    plain().socket().shutdown(net::socket_base::shutdown_send, ignored);
    plain().expires_after(kLinger);
    std::string rest(kReadBytes, '\0');
    while (true) {
      const auto [error, n] = co_await plain().async_read_some(net::buffer(rest), kTuple);
      if (error) co_return false;
    }
  }

  /// Sends the answer as it comes, and notices when the client goes meanwhile.
  net::awaitable<bool> answer(Outbox& outbox, unsigned version, bool keep_alive, bool head_only) {
    using net::experimental::awaitable_operators::operator||;
    const auto sent =
        co_await (send(outbox, version, keep_alive, head_only) || until_client_goes());
    const bool* whole = std::get_if<0>(&sent);
    co_return whole == nullptr ? false : *whole;
  }

  net::awaitable<bool> send(Outbox& outbox, unsigned version, bool keep_alive, bool head_only) {
    co_await net::this_coro::throw_if_cancelled(false);
    bool chunked = false;
    while (true) {
      Outbox::Ready ready = outbox.take();
      if (!ready.anything()) {
        if (is_cancelled(co_await net::this_coro::cancellation_state)) co_return false;
        plain().expires_never();
        co_await wake_.async_wait(kTuple);
        continue;
      }
      if (ready.head && !ready.streamed) {
        co_return co_await send_whole(*ready.head, version, keep_alive, head_only);
      }
      if (ready.head) {
        chunked = version >= 11;
        if (!co_await send_head(*ready.head, version, keep_alive)) co_return false;
        ready.piece.insert(0, ready.head->body);
      }
      if (!ready.piece.empty() && !co_await send_piece(ready.piece, chunked)) co_return false;
      if (ready.broken) co_return false;
      if (ready.ended) {
        if (chunked && !co_await write_all(net::buffer("0\r\n\r\n", 5))) co_return false;
        co_return chunked;  // the end of an older client's stream is that of the connection
      }
    }
  }

  /// To be asked before each wait that nothing but the other side or a cancellation ends: one that
  /// came when nothing was waited for does not end the next wait.
  static bool is_cancelled(const net::cancellation_state& state) {
    return state.cancelled() != net::cancellation_type::none;
  }

  net::awaitable<bool> send_whole(const Response& response, unsigned version, bool keep_alive,
                                  bool head_only) {
    bhttp::response<bhttp::string_body> out{bhttp::status::ok, version};
    set_head(out, response);
    out.keep_alive(keep_alive && !shared_->draining);
    out.content_length(response.body.size());
    if (!head_only) out.body() = response.body;
    bhttp::response_serializer<bhttp::string_body> serializer(out);
    plain().expires_after(shared_->limits.write_time);
    const auto [error, n] = head_only
                                ? co_await bhttp::async_write_header(stream_, serializer, kTuple)
                                : co_await bhttp::async_write(stream_, serializer, kTuple);
    co_return !error;
  }

  net::awaitable<bool> send_head(const Response& head, unsigned version, bool keep_alive) {
    bhttp::response<bhttp::empty_body> out{bhttp::status::ok, version};
    set_head(out, head);
    out.keep_alive(keep_alive && version >= 11);
    if (version >= 11) out.chunked(true);
    bhttp::response_serializer<bhttp::empty_body> serializer(out);
    plain().expires_after(shared_->limits.write_time);
    const auto [error, n] = co_await bhttp::async_write_header(stream_, serializer, kTuple);
    co_return !error;
  }

  net::awaitable<bool> send_piece(const std::string& piece, bool chunked) {
    if (!chunked) co_return co_await write_all(net::buffer(piece));
    co_return co_await write_all(bhttp::make_chunk(net::buffer(piece)));
  }

  template <typename Buffers>
  net::awaitable<bool> write_all(const Buffers& buffers) {
    plain().expires_after(shared_->limits.write_time);
    const auto [error, n] = co_await net::async_write(stream_, buffers, kTuple);
    co_return !error;
  }

  /// Returns when the peer has closed the connection, or when cancelled.
  net::awaitable<void> until_client_goes() {
    co_await net::this_coro::throw_if_cancelled(false);
    PlainSocket& socket = plain().socket();
    net::steady_timer pause(stream_.get_executor());
    while (!is_cancelled(co_await net::this_coro::cancellation_state)) {
      const auto [error] = co_await socket.async_wait(net::socket_base::wait_read, kTuple);
      if (error || has_gone(socket.native_handle())) co_return;
      // The next request came early, or TLS says farewell: what lies there is not read now.
      if (is_cancelled(co_await net::this_coro::cancellation_state)) co_return;
      pause.expires_after(kLookAgain);
      co_await pause.async_wait(kTuple);
    }
  }

  std::shared_ptr<Shared> shared_;
  Stream stream_;
  beast::flat_buffer buffer_;
  net::steady_timer wake_;  ///< ends early when the outbox has something
  std::string client_;
  bool busy_ = false;
};

}  // namespace

std::shared_ptr<AnyConnection> make_connection(PlainSocket socket, std::string client,
                                               std::shared_ptr<Shared> shared,
                                               net::ssl::context* tls) {
  PlainStream stream(std::move(socket));
  if (tls == nullptr) {
    return std::make_shared<Connection<PlainStream>>(std::move(stream), std::move(client),
                                                     std::move(shared));
  }
  return std::make_shared<Connection<TlsStream>>(TlsStream(std::move(stream), *tls),
                                                 std::move(client), std::move(shared));
}

}  // namespace triptych::http
