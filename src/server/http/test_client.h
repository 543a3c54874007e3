#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace triptych::http {

/// A client of a server at 127.0.0.1 or a unix socket, with nothing of HTTP in it: it sends and
/// receives bytes.
class TestClient {
 public:
  explicit TestClient(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  explicit TestClient(const std::string& unix_socket) : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    unix_socket.copy(address.sun_path, sizeof(address.sun_path) - 1);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~TestClient() { close(); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  bool connected() const { return connected_; }
  int socket() const { return socket_; }
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  /// All that comes until `end` has come, the server ends the connection, or nothing comes for ten
  /// seconds.
  std::string receive_until(std::string_view end) {
    std::string out;
    while (out.find(end) == std::string::npos || end.empty()) {
      pollfd waiting{socket_, POLLIN, 0};
      if (::poll(&waiting, 1, 10000) <= 0) break;
      char bytes[4096];
      const ssize_t n = ::recv(socket_, bytes, sizeof(bytes), 0);
      if (n <= 0) break;
      out.append(bytes, static_cast<size_t>(n));
    }
    return out;
  }
  std::string receive_all() { return receive_until({}); }
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

 private:
  int socket_;
  bool connected_ = false;
};

/// A whole request with a body, after which the server ends the connection.
inline std::string post(std::string_view path, std::string_view body) {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n" +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}
inline std::string get(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
}

}  // namespace triptych::http
