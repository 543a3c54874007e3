#pragma once

#include <sys/socket.h>

namespace triptych {

/// Whether an address belongs to the public internet: none of this machine, of private networks, of
/// links, of carriers, of documentation, multicast, or of IPv6 that carries such an IPv4 address
/// (IANA's special-purpose registries, RFC 6890 and its updates).
bool is_public_address(const sockaddr& address);

}  // namespace triptych
