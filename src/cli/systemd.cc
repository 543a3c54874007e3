#include "cli/systemd.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>

#include "base/settings.h"

namespace triptych::cli {

void tell_systemd(std::string_view state) {
  const std::string path = Settings::from_environment().notify_socket;
  sockaddr_un address{};
  if (path.empty() || path.size() >= sizeof(address.sun_path)) return;
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  if (path.front() == '@') address.sun_path[0] = '\0';  // a name without a file
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  (void)::sendto(socket, state.data(), state.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address), size);
  ::close(socket);
}

}  // namespace triptych::cli
