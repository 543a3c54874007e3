#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "base/status.h"
#include "media/sandbox/descriptor.h"

namespace triptych::sandbox {

/// Two ends of a connection between processes of one host that keeps messages apart and tells when
/// the other end is gone.
struct SocketPair {
  Descriptor ours;
  Descriptor theirs;
};
Result<SocketPair> make_socket_pair();

/// A message travels as the bytes of a struct: both ends are the same program.
template <typename T>
std::span<const std::byte> bytes_of(const T& message) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_bytes(std::span(&message, 1));
}
template <typename T>
std::span<std::byte> writable_bytes_of(T& message) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_writable_bytes(std::span(&message, 1));
}

/// At most as many descriptors go with a message.
inline constexpr size_t kMostFiles = 2;

/// Sends a message and copies of `files`. 0, or an errno; EPIPE when the other end is gone. Does
/// not wait: each end has at most one message on its way.
int send_message(int socket, std::span<const std::byte> message, std::span<const int> files = {});

/// Waits for a message and returns its length; 0 when the other end is gone or what came is not
/// what fits. Descriptors that came with it go to `files`; those that nobody asked for are closed.
size_t receive_message(int socket, std::span<std::byte> message, std::span<Descriptor> files = {});

/// Whether there is a message, or the other end's death to learn of, within `ms`.
bool wait_readable(int socket, double ms);

/// Whether the other end is gone.
bool has_hung_up(int socket);

}  // namespace triptych::sandbox
