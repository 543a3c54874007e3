#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace triptych {

/// An address of something to fetch, in the one form that leaves no room for two readings.
struct RemoteUrl {
  bool tls = false;
  std::string host;  ///< a name in small letters, or an IPv4 address of four decimal numbers
  uint16_t port = 0;
  std::string target;  ///< path and query, at least "/"

  std::string text() const;
};

/// Reads http and https addresses more strictly than RFC 3986: no user, no fragment, no brackets,
/// no backslash, nothing but ASCII letters, digits, '-' and '.' in the host, no port but that of
/// the scheme. A host of digits and dots is four decimal numbers without leading zeros; one that
/// looks like a number in any other way is refused. kInvalidArgument says which rule.
Result<RemoteUrl> parse_remote_url(std::string_view text);

/// Whether a host is one of a list: "example.org", or "*.example.org" for all below it.
bool is_listed_host(std::string_view host, std::string_view pattern);

}  // namespace triptych
