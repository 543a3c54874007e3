#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace triptych::http {

/// Of ASCII text, as names of headers and schemes are compared.
bool equal_ignoring_case(std::string_view a, std::string_view b);

struct Header {
  std::string name;
  std::string value;
};

/// A request whose body has arrived as a whole.
struct Request {
  std::string method;  ///< "GET"
  std::string path;    ///< as sent, without the query
  std::string query;   ///< behind the question mark
  std::vector<Header> headers;
  std::string body;
  std::string client;     ///< address of the peer
  double arrived_ms = 0;  ///< when the last byte had come, of steady_ms()

  /// Value of the first header of that name, in any case; null: there is none.
  const std::string* header(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<Header> headers;
  std::string body;
};

/// One request's way back: respond() once, or start_stream(), any number of write() and finish().
/// Any thread may call it, one at a time. Dropped without an answer, the client gets a 500; dropped
/// inside a stream, its connection is cut, so that a broken answer never looks like a whole one.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual void respond(Response response) = 0;
  /// Status and headers of an answer that comes in pieces; `head.body` is its first piece.
  virtual void start_stream(Response head) = 0;
  /// False: the client has gone, or reads so slowly that more than
  /// ServerLimits::stream_backlog_bytes wait for it; nothing will be sent any more.
  virtual bool write(std::string_view piece) = 0;
  virtual void finish() = 0;

  /// `gone` is called once, on a thread of the server, when the client goes before the answer has
  /// ended; at once when it has gone already. It must not block.
  virtual void on_gone(std::function<void()> gone) = 0;
};

/// Looks at a request whose body is still to come: an answer here refuses it, and the body is not
/// read. Runs on a thread of the server.
using Admission = std::function<std::optional<Response>(const Request& head)>;

/// Told what happens at the connections, by the threads of the server: it must not wait for
/// anything.
class ConnectionObserver {
 public:
  virtual ~ConnectionObserver() = default;
  virtual void connection_opened() = 0;
  virtual void connection_closed() = 0;
  virtual void body_received(uint64_t n_bytes) = 0;  ///< as much of one as has come
};

/// Answers a request, now or later from another thread. Runs on a thread of the server: it must not
/// wait for anything.
using Handler = std::function<void(Request request, std::shared_ptr<Exchange> exchange)>;

}  // namespace triptych::http
