#include "media/sandbox/channel.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/clock.h"

namespace triptych::sandbox {
namespace {

/// Room for the descriptors of a message, aligned as the system wants it.
struct alignas(cmsghdr) FileRoom {
  std::array<char, CMSG_SPACE(sizeof(int) * kMostFiles)> bytes{};
};

void take_files(msghdr& header, std::span<Descriptor> files) {
  size_t n_taken = 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < n; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      Descriptor file(fd);
      if (n_taken < files.size()) files[n_taken++] = std::move(file);
    }
  }
}

}  // namespace

Result<SocketPair> make_socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return resource_exhausted(fmt::format("no socket for a decoder: {}", std::strerror(errno)));
  }
  return SocketPair{Descriptor(ends[0]), Descriptor(ends[1])};
}

int send_message(int socket, std::span<const std::byte> message, std::span<const int> files) {
  iovec part{const_cast<std::byte*>(message.data()), message.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  FileRoom room;
  if (!files.empty()) {
    header.msg_control = room.bytes.data();
    header.msg_controllen = CMSG_SPACE(files.size_bytes());
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(files.size_bytes());
    std::memcpy(CMSG_DATA(c), files.data(), files.size_bytes());
  }
  for (;;) {
    const ssize_t sent = ::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return 0;
    if (errno != EINTR) return errno;
  }
}

size_t receive_message(int socket, std::span<std::byte> message, std::span<Descriptor> files) {
  iovec part{message.data(), message.size()};
  FileRoom room;
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!files.empty()) {
    header.msg_control = room.bytes.data();
    header.msg_controllen = room.bytes.size();
  }
  ssize_t n = -1;
  do {
    n = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n <= 0) return 0;
  take_files(header, files);
  return (header.msg_flags & MSG_TRUNC) != 0 ? 0 : static_cast<size_t>(n);
}

bool wait_readable(int socket, double ms) {
  const double end = steady_ms() + ms;
  for (;;) {
    pollfd waiting{socket, POLLIN, 0};
    const double left = std::max(0.0, end - steady_ms());
    const int n = ::poll(&waiting, 1, static_cast<int>(std::ceil(left)));
    if (n > 0) return true;
    if (n == 0 || errno != EINTR) return false;
  }
}

bool has_hung_up(int socket) {
  pollfd asked{socket, 0, 0};
  return ::poll(&asked, 1, 0) > 0 && (asked.revents & (POLLHUP | POLLERR)) != 0;
}

}  // namespace triptych::sandbox
