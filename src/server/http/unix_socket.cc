#include "server/http/unix_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace triptych::http {
namespace {

bool somebody_listens(const sockaddr_un& address) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return true;  // nothing is removed on a guess
  const int result =
      ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const bool refused = result != 0 && errno == ECONNREFUSED;
  ::close(socket);
  return !refused;
}

}  // namespace

Result<UnixSocketFile> UnixSocketFile::claim(std::string path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return invalid_argument(fmt::format("{}: a socket's path has at most {} bytes", path,
                                        sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return UnixSocketFile(std::move(path));
  if (!S_ISSOCK(found.st_mode)) {
    return invalid_argument(fmt::format("{}: is there and no socket", path));
  }
  if (somebody_listens(address)) {
    return Status(StatusCode::kUnavailable,
                  fmt::format("cannot listen at {}: another server does", path));
  }
  ::unlink(path.c_str());
  return UnixSocketFile(std::move(path));
}

UnixSocketFile::~UnixSocketFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

UnixSocketFile::UnixSocketFile(UnixSocketFile&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

UnixSocketFile& UnixSocketFile::operator=(UnixSocketFile&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

}  // namespace triptych::http
