// Boost.Beast and Asio, of which no other file knows. A connection is one coroutine on a strand.
#include "server/http/http_server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <condition_variable>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "server/http/body_budget.h"
#include "server/http/outbox.h"

namespace triptych::http {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using boost::system::error_code;
using net::ip::tcp;

constexpr auto kTuple = net::as_tuple(net::use_awaitable);
constexpr std::chrono::milliseconds kAcceptPause(50);  ///< when no more files can be opened
constexpr std::chrono::milliseconds kLinger(1000);     ///< for a refused client to read why
constexpr size_t kReadBytes = 64 << 10;
constexpr std::string_view kFault = "the server failed to answer; its log says why";

/// Closes an outbox whatever ends the connection, the end of the server too.
struct Closing {
  std::shared_ptr<Outbox> outbox;
  bool delivered = false;

  ~Closing() { outbox->close(delivered); }
};

/// What connections share.
struct Shared {
  Shared(const ServerLimits& server_limits, Server::Callbacks given, int handler_threads)
      : limits(server_limits),
        callbacks(std::move(given)),
        bodies(limits.all_bodies_bytes),
        handlers(static_cast<size_t>(std::max(1, handler_threads))) {}

  const ServerLimits limits;
  const Server::Callbacks callbacks;
  BodyBudget bodies;
  net::thread_pool handlers;
  std::atomic<bool> draining = false;
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

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, std::shared_ptr<Shared> shared)
      : shared_(std::move(shared)),
        stream_(std::move(socket)),
        wake_(stream_.get_executor(), net::steady_timer::time_point::max()) {
    error_code error;
    const tcp::endpoint peer = stream_.socket().remote_endpoint(error);
    if (!error) client_ = peer.address().to_string();
    stream_.socket().set_option(tcp::no_delay(true), error);
  }

  net::awaitable<void> run() {
    // What a peer does while we write shows as an error of an operation, never as an exception.
    co_await net::this_coro::throw_if_cancelled(false);
    while (co_await serve_one()) {
    }
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
  }

  auto executor() { return stream_.get_executor(); }

  /// On the connection's strand: ends it unless a request is being answered.
  void close_if_idle() {
    if (!busy_) stream_.cancel();
  }

 private:
  using Parser = bhttp::request_parser<bhttp::string_body>;

  /// One request and its answer; false: the connection ends.
  net::awaitable<bool> serve_one() {
    const ServerLimits& limits = shared_->limits;
    if (buffer_.size() == 0) {
      stream_.expires_after(limits.idle_time);
      const auto [error, n] = co_await stream_.async_read_some(buffer_.prepare(kReadBytes), kTuple);
      if (error || shared_->draining) co_return false;
      buffer_.commit(n);
    }
    busy_ = true;
    Parser parser;
    parser.header_limit(limits.header_bytes);
    parser.body_limit(limits.body_bytes);
    stream_.expires_after(limits.header_time);
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
        std::make_shared<Outbox>(limits.stream_backlog_bytes, [self = shared_from_this()] {
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
      stream_.expires_at(start + limits.body_grace +
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
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(kLinger);
    std::string rest(kReadBytes, '\0');
    while (true) {
      const auto [error, n] = co_await stream_.async_read_some(net::buffer(rest), kTuple);
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
        stream_.expires_never();
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
    stream_.expires_after(shared_->limits.write_time);
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
    stream_.expires_after(shared_->limits.write_time);
    const auto [error, n] = co_await bhttp::async_write_header(stream_, serializer, kTuple);
    co_return !error;
  }

  net::awaitable<bool> send_piece(const std::string& piece, bool chunked) {
    if (!chunked) co_return co_await write_all(net::buffer(piece));
    co_return co_await write_all(bhttp::make_chunk(net::buffer(piece)));
  }

  template <typename Buffers>
  net::awaitable<bool> write_all(const Buffers& buffers) {
    stream_.expires_after(shared_->limits.write_time);
    const auto [error, n] = co_await net::async_write(stream_, buffers, kTuple);
    co_return !error;
  }

  /// Returns when the peer has closed the connection, or when cancelled.
  net::awaitable<void> until_client_goes() {
    co_await net::this_coro::throw_if_cancelled(false);
    tcp::socket& socket = stream_.socket();
    while (true) {
      const auto [error] = co_await socket.async_wait(tcp::socket::wait_read, kTuple);
      if (error) co_return;
      char byte = 0;
      const ssize_t n = ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) co_return;
      if (n > 0) break;  // the next request comes early, and is read when this one is answered
    }
    if (is_cancelled(co_await net::this_coro::cancellation_state)) co_return;
    net::steady_timer never(stream_.get_executor(), net::steady_timer::time_point::max());
    co_await never.async_wait(kTuple);
  }

  std::shared_ptr<Shared> shared_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  net::steady_timer wake_;  ///< ends early when the outbox has something
  std::string client_;
  bool busy_ = false;
};

}  // namespace

class Server::Impl {
 public:
  Impl(const ServerLimits& limits, Callbacks callbacks, int handler_threads)
      : shared_(std::make_shared<Shared>(limits, std::move(callbacks), handler_threads)),
        acceptor_(io_) {}

  ~Impl() {
    io_.stop();
    for (std::thread& thread : threads_) thread.join();
    shared_->handlers.stop();
    shared_->handlers.join();
  }

  Status listen(const ListenOptions& listen) {
    error_code error;
    const net::ip::address address = net::ip::make_address(listen.host, error);
    if (error) {
      return invalid_argument(
          fmt::format("host \"{}\" is no IP address, as 127.0.0.1 or ::1 are", listen.host));
    }
    const tcp::endpoint at(address, listen.port);
    acceptor_.open(at.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(at, error);
    if (!error) acceptor_.listen(net::socket_base::max_listen_connections, error);
    if (error) {
      return {StatusCode::kUnavailable, fmt::format("cannot listen at {} port {}: {}", listen.host,
                                                    listen.port, error.message())};
    }
    port_ = acceptor_.local_endpoint().port();
    net::co_spawn(io_, accept(), net::detached);
    for (int i = 0; i < std::max(1, listen.threads); ++i) {
      threads_.emplace_back([this] { io_.run(); });
    }
    return Status::ok();
  }

  uint16_t port() const { return port_; }

  bool drain(std::chrono::milliseconds grace) {
    shared_->draining = true;
    net::post(io_, [this] {
      error_code ignored;
      acceptor_.close(ignored);
    });
    std::unique_lock lock(mutex_);
    for (const auto& connection : connections_) {
      net::post(connection->executor(), [connection] { connection->close_if_idle(); });
    }
    return ended_.wait_for(lock, grace, [this] { return connections_.empty(); });
  }

 private:
  net::awaitable<void> accept() {
    while (acceptor_.is_open()) {
      auto [error, socket] = co_await acceptor_.async_accept(net::make_strand(io_), kTuple);
      if (error == net::error::operation_aborted || error == net::error::bad_descriptor) co_return;
      if (error) {  // of one client, or no more files can be opened
        net::steady_timer pause(io_, kAcceptPause);
        co_await pause.async_wait(kTuple);
        continue;
      }
      begin(std::move(socket));
    }
  }

  void begin(tcp::socket socket) {
    auto connection = std::make_shared<Connection>(std::move(socket), shared_);
    {
      const std::lock_guard lock(mutex_);
      if (static_cast<int64_t>(connections_.size()) >= shared_->limits.connections) return;
      connections_.insert(connection);
    }
    if (ConnectionObserver* observer = shared_->callbacks.observer) observer->connection_opened();
    net::co_spawn(connection->executor(), connection->run(),
                  [this, connection](std::exception_ptr failure) { end(connection, failure); });
  }

  void end(const std::shared_ptr<Connection>& connection, const std::exception_ptr& failure) {
    if (failure) {
      try {
        std::rethrow_exception(failure);
      } catch (...) {
        log_error(status_of_exception("serving a connection").message());
      }
    }
    if (ConnectionObserver* observer = shared_->callbacks.observer) observer->connection_closed();
    const std::lock_guard lock(mutex_);
    connections_.erase(connection);
    if (connections_.empty()) ended_.notify_all();
  }

  net::io_context io_;  // outlives what has a socket in it
  std::shared_ptr<Shared> shared_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::set<std::shared_ptr<Connection>> connections_;
  tcp::acceptor acceptor_;
  uint16_t port_ = 0;
  std::vector<std::thread> threads_;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(const ListenOptions& listen,
                                              const ServerLimits& limits, Callbacks callbacks) {
  auto impl = std::make_unique<Impl>(limits, std::move(callbacks), listen.handler_threads);
  TRIPTYCH_RETURN_IF_ERROR(impl->listen(listen));
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

uint16_t Server::port() const { return impl_->port(); }

bool Server::drain(std::chrono::milliseconds grace) { return impl_->drain(grace); }

}  // namespace triptych::http
