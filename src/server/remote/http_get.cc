#include "server/remote/http_get.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <mutex>

namespace triptych {
namespace {

constexpr long kStatusOk = 200;

struct Transfer {
  const HttpGetLimits& limits;
  std::string body;
  bool refused = false;
  bool too_long = false;
};

size_t take(char* bytes, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const size_t n = size * count;
  if (transfer.body.size() + n > transfer.limits.max_bytes) {
    transfer.too_long = true;
    return 0;  // ends the transfer
  }
  transfer.body.append(bytes, n);
  return n;
}

/// Called with the very address that will be connected to: there is no second look-up behind it.
curl_socket_t open_socket(void* user, curlsocktype purpose, curl_sockaddr* address) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (purpose != CURLSOCKTYPE_IPCXN || !transfer.limits.allow(address->addr)) {
    transfer.refused = true;
    return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

void set_limits(CURL* curl, const RemoteUrl& url, Transfer& transfer) {
  curl_easy_setopt(curl, CURLOPT_URL, url.text().c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, url.tls ? "https" : "http");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(transfer.limits.time.count()));
  curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE,
                   static_cast<curl_off_t>(transfer.limits.max_bytes));
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "triptych");
  curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
}

}  // namespace

Result<std::string> http_get(const RemoteUrl& url, const HttpGetLimits& limits) {
  static std::once_flag initialised;
  std::call_once(initialised, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 curl_easy_cleanup);
  if (curl == nullptr) return internal_error("no memory to fetch with");
  Transfer transfer{.limits = limits, .body = {}};
  set_limits(curl.get(), url, transfer);
  const CURLcode code = curl_easy_perform(curl.get());
  const std::string& host = url.host;
  if (transfer.refused) {
    return Status(StatusCode::kPermissionDenied,
                  fmt::format("{} has an address that this server does not fetch from", host));
  }
  if (transfer.too_long || code == CURLE_FILESIZE_EXCEEDED) {
    return out_of_range(fmt::format("{} sends more than {} bytes", host, limits.max_bytes));
  }
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return Status(StatusCode::kDeadlineExceeded,
                  fmt::format("{} did not send it within {} ms", host, limits.time.count()));
  }
  if (code != CURLE_OK) {
    return invalid_argument(
        fmt::format("cannot be fetched from {}: {}", host, curl_easy_strerror(code)));
  }
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status != kStatusOk) {
    return invalid_argument(
        fmt::format("{} answers with status {}{}", host, status,
                    status >= 300 && status < 400 ? "; redirects are not followed" : ""));
  }
  return std::move(transfer.body);
}

}  // namespace triptych
