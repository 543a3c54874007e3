#include "server/http/http_server.h"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <optional>
#include <set>
#include <thread>

#include "base/log.h"
#include "server/http/connection.h"
#include "server/http/unix_socket.h"

namespace triptych::http {
namespace {

using boost::system::error_code;
using net::ip::tcp;
using LocalProtocol = net::local::stream_protocol;

constexpr auto kTuple = net::as_tuple(net::use_awaitable);
constexpr std::chrono::milliseconds kAcceptPause(50);  ///< when no more files can be opened

}  // namespace

class Server::Impl {
 public:
  Impl(const ServerLimits& limits, Callbacks callbacks, int handler_threads)
      : shared_(std::make_shared<Shared>(limits, std::move(callbacks), handler_threads)),
        tcp_(io_),
        local_(io_) {}

  ~Impl() {
    io_.stop();
    for (std::thread& thread : threads_) thread.join();
    shared_->handlers.stop();
    shared_->handlers.join();
  }

  Status listen(const ListenOptions& listen) {
    if (!listen.tls.certificate.empty()) TRIPTYCH_RETURN_IF_ERROR(load_tls(listen.tls));
    if (!listen.unix_socket.empty()) {
      TRIPTYCH_ASSIGN_OR_RETURN(socket_file_, UnixSocketFile::claim(listen.unix_socket));
      const error_code error = open(local_, LocalProtocol::endpoint(listen.unix_socket));
      if (error) return cannot_listen(listen.unix_socket, error);
      net::co_spawn(io_, accept(local_), net::detached);
    } else {
      TRIPTYCH_RETURN_IF_ERROR(listen_tcp(listen));
      net::co_spawn(io_, accept(tcp_), net::detached);
    }
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
      tcp_.close(ignored);
      local_.close(ignored);
    });
    std::unique_lock lock(mutex_);
    for (const auto& connection : connections_) {
      net::post(connection->executor(), [connection] { connection->close_if_idle(); });
    }
    return ended_.wait_for(lock, grace, [this] { return connections_.empty(); });
  }

 private:
  Status listen_tcp(const ListenOptions& listen) {
    error_code error;
    const net::ip::address address = net::ip::make_address(listen.host, error);
    if (error) {
      return invalid_argument(
          fmt::format("host \"{}\" is no IP address, as 127.0.0.1 or ::1 are", listen.host));
    }
    error = open(tcp_, tcp::endpoint(address, listen.port));
    if (error) return cannot_listen(fmt::format("{} port {}", listen.host, listen.port), error);
    port_ = tcp_.local_endpoint().port();
    return Status::ok();
  }

  template <typename Acceptor>
  static error_code open(Acceptor& acceptor, const typename Acceptor::endpoint_type& at) {
    error_code error;
    acceptor.open(at.protocol(), error);
    if (!error) acceptor.set_option(net::socket_base::reuse_address(true), error);
    if (!error) acceptor.bind(at, error);
    if (!error) acceptor.listen(net::socket_base::max_listen_connections, error);
    return error;
  }

  static Status cannot_listen(const std::string& where, const error_code& error) {
    return {StatusCode::kUnavailable,
            fmt::format("cannot listen at {}: {}", where, error.message())};
  }

  /// TLS 1.2 and later with the ciphers that the system's OpenSSL is set to.
  Status load_tls(const TlsFiles& files) {
    using Context = net::ssl::context;
    auto context = std::make_unique<Context>(Context::tls_server);
    context->set_options(Context::default_workarounds | Context::no_tlsv1 | Context::no_tlsv1_1);
    const auto refused = [](const std::string& file, const error_code& error) {
      return invalid_argument(fmt::format("{}: {}", file, error.message()));
    };
    error_code error;
    context->use_certificate_chain_file(files.certificate, error);
    if (error) return refused(files.certificate, error);
    context->use_private_key_file(files.private_key, Context::pem, error);
    if (error) return refused(files.private_key, error);
    if (!files.client_ca.empty()) {
      context->load_verify_file(files.client_ca, error);
      if (error) return refused(files.client_ca, error);
      context->set_verify_mode(net::ssl::verify_peer | net::ssl::verify_fail_if_no_peer_cert);
    }
    tls_ = std::move(context);
    return Status::ok();
  }

  template <typename Acceptor>
  net::awaitable<void> accept(Acceptor& acceptor) {
    while (acceptor.is_open()) {
      const net::any_io_executor strand(net::make_strand(io_));
      auto [error, socket] = co_await acceptor.async_accept(strand, kTuple);
      if (error == net::error::operation_aborted || error == net::error::bad_descriptor) co_return;
      if (error) {  // of one client, or no more files can be opened
        net::steady_timer pause(io_, kAcceptPause);
        co_await pause.async_wait(kTuple);
        continue;
      }
      std::string client = prepare(socket);
      begin(PlainSocket(std::move(socket)), std::move(client));
    }
  }

  /// Makes a new socket ready; who is at its other end.
  static std::string prepare(tcp::socket& socket) {
    error_code error;
    const tcp::endpoint peer = socket.remote_endpoint(error);
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    return error ? "" : peer.address().to_string();
  }
  static std::string prepare(LocalProtocol::socket&) { return "unix"; }

  void begin(PlainSocket socket, std::string client) {
    auto connection = make_connection(std::move(socket), std::move(client), shared_, tls_.get());
    {
      const std::lock_guard lock(mutex_);
      if (static_cast<int64_t>(connections_.size()) >= shared_->limits.connections) return;
      connections_.insert(connection);
    }
    if (ConnectionObserver* observer = shared_->callbacks.observer) observer->connection_opened();
    net::co_spawn(connection->executor(), connection->run(),
                  [this, connection](std::exception_ptr failure) { end(connection, failure); });
  }

  void end(const std::shared_ptr<AnyConnection>& connection, const std::exception_ptr& failure) {
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
  std::set<std::shared_ptr<AnyConnection>> connections_;
  std::unique_ptr<net::ssl::context> tls_;  ///< null: none
  std::optional<UnixSocketFile> socket_file_;
  tcp::acceptor tcp_;
  LocalProtocol::acceptor local_;
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
