#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "server/remote/address.h"
#include "server/remote/url.h"

namespace triptych {

struct HttpGetLimits {
  uint64_t max_bytes = 0;
  std::chrono::milliseconds time{};                            ///< for all of it
  bool (*allow)(const sockaddr& address) = is_public_address;  ///< what may be connected to
};

/// The body of what a server answers with status 200 (libcurl). No redirect is followed, no proxy,
/// cookie or credential is used. kPermissionDenied for an address that is not allowed, before a
/// connection is made; kOutOfRange for a body that is too long, kDeadlineExceeded when it takes too
/// long, kInvalidArgument for what the caller named and cannot be had.
Result<std::string> http_get(const RemoteUrl& url, const HttpGetLimits& limits);

}  // namespace triptych
