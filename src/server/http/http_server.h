#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "server/http/http.h"

namespace triptych::http {

/// What one client may take of the server, and all of them together.
struct ServerLimits {
  uint32_t header_bytes = 16 << 10;
  uint64_t body_bytes = uint64_t{32} << 20;
  uint64_t all_bodies_bytes = uint64_t{256} << 20;  ///< that are being received at once
  uint64_t stream_backlog_bytes = uint64_t{1} << 20;
  uint64_t long_body_bytes = 64 << 10;  ///< from here on, handled beside the threads that read
  int64_t connections = 4096;
  std::chrono::milliseconds header_time{5000};  ///< from the first byte to the last of the headers
  std::chrono::milliseconds idle_time{75000};   ///< between two requests of a connection
  /// A body may take as long, and a second more for each `body_bytes_per_s` that have come.
  std::chrono::milliseconds body_grace{10000};
  uint64_t body_bytes_per_s = 1024;
  std::chrono::milliseconds write_time{30000};  ///< for a piece to be taken by the client
};

/// Files in PEM format. Without a certificate there is no TLS.
struct TlsFiles {
  std::string certificate;  ///< and what leads from it to a known authority
  std::string private_key;
  std::string client_ca;  ///< clients need a certificate of it; empty: they need none
};

struct ListenOptions {
  std::string host = "127.0.0.1";  ///< an address, not a name
  uint16_t port = 8000;            ///< 0: any free one
  std::string unix_socket;         ///< path of a socket to listen at in place of host and port
  TlsFiles tls;
  int threads = 2;          ///< that read and write
  int handler_threads = 1;  ///< for requests whose bodies take long to work through
};

/// HTTP/1.1, over TLS or not, with keep-alive and streamed answers (Boost.Beast behind this
/// interface). Requests over a limit are answered without reading the rest of them.
class Server {
 public:
  /// Makes the answers to what is no request, or over a limit (a status of 400 and above, and what
  /// was wrong).
  using Refusal = std::function<Response(int status, std::string_view reason)>;

  struct Callbacks {
    Handler handler;
    Refusal refusal;
    Admission admission = nullptr;           ///< null: all are admitted
    ConnectionObserver* observer = nullptr;  ///< outlives the server; null: nobody looks
  };

  /// kInvalidArgument for an address that is none and for TLS files that cannot be used,
  /// kUnavailable when the address cannot be listened at.
  static Result<std::unique_ptr<Server>> start(const ListenOptions& listen,
                                               const ServerLimits& limits, Callbacks callbacks);
  /// Closes what is left.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const;  ///< 0 at a unix socket
  /// Takes no new connection or request, lets what is being answered end, and returns when it has
  /// or `grace` is over: false then.
  bool drain(std::chrono::milliseconds grace);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace triptych::http
