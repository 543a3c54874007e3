#pragma once

// Between http_server.cc and connection.cc alone: the files that know of Boost.
#include <algorithm>
#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <string>

#include "server/http/body_budget.h"
#include "server/http/http_server.h"

namespace triptych::http {

namespace net = boost::asio;

/// A socket of either family.
using PlainSocket = net::generic::stream_protocol::socket;

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

/// What the server knows of a connection.
class AnyConnection {
 public:
  virtual ~AnyConnection() = default;
  virtual net::any_io_executor executor() = 0;
  virtual net::awaitable<void> run() = 0;
  /// On the connection's strand: ends it unless a request is being answered.
  virtual void close_if_idle() = 0;
};

/// A connection that speaks TLS where there is a context for it, which outlives it.
std::shared_ptr<AnyConnection> make_connection(PlainSocket socket, std::string client,
                                               std::shared_ptr<Shared> shared,
                                               net::ssl::context* tls);

}  // namespace triptych::http
