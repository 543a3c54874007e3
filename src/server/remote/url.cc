#include "server/remote/url.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace triptych {
namespace {

constexpr size_t kLongestUrl = 4096;
constexpr size_t kLongestHost = 253;  // RFC 1035
constexpr size_t kLongestLabel = 63;  // the same
constexpr uint16_t kHttpPort = 80;
constexpr uint16_t kHttpsPort = 443;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_small(char c) { return c >= 'a' && c <= 'z'; }

/// Four numbers of 0 to 255 without leading zeros.
bool is_plain_ipv4(std::string_view host) {
  int n = 0;
  while (!host.empty()) {
    const size_t dot = std::min(host.find('.'), host.size());
    const std::string_view part = host.substr(0, dot);
    int value = -1;
    std::from_chars(part.data(), part.data() + part.size(), value);
    if (part.empty() || part.size() > 3 || value < 0 || value > 255) return false;
    if (part.size() > 1 && part.front() == '0') return false;
    if (!std::all_of(part.begin(), part.end(), is_digit)) return false;
    ++n;
    host.remove_prefix(std::min(dot + 1, host.size()));
  }
  return n == 4;
}

Status check_host(std::string_view host) {
  if (host.empty() || host.size() > kLongestHost) return invalid_argument("the host is no name");
  std::string_view rest = host;
  std::string_view last;
  while (!rest.empty()) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    last = rest.substr(0, dot);
    const auto plain = [](char c) { return is_small(c) || is_digit(c) || c == '-'; };
    if (last.empty() || last.size() > kLongestLabel || last.front() == '-' || last.back() == '-' ||
        !std::all_of(last.begin(), last.end(), plain)) {
      return invalid_argument("the host is no name of ASCII letters, digits, '-' and '.'");
    }
    if (dot + 1 == rest.size()) return invalid_argument("the host ends in a dot");
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  // Systems read 127.1, 0x7f.1 and 2130706433 as addresses; top-level names begin with a letter.
  if (is_digit(last.front()) && !is_plain_ipv4(host)) {
    return invalid_argument("an address is written as four decimal numbers");
  }
  return Status::ok();
}

}  // namespace

std::string RemoteUrl::text() const {
  return fmt::format("{}://{}:{}{}", tls ? "https" : "http", host, port, target);
}

Result<RemoteUrl> parse_remote_url(std::string_view text) {
  RemoteUrl out;
  if (text.size() > kLongestUrl) {
    return invalid_argument(fmt::format("the address is longer than {} bytes", kLongestUrl));
  }
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte >= 0x7f || c == '\\' || c == '"' || c == '<' || c == '>' || c == '^' ||
        c == '`' || c == '{' || c == '|' || c == '}') {
      return invalid_argument("the address holds a character that must be percent-encoded");
    }
  }
  const size_t colon = text.find("://");
  std::string scheme(text.substr(0, std::min(colon, text.size())));
  std::transform(scheme.begin(), scheme.end(), scheme.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (colon == std::string_view::npos || (scheme != "http" && scheme != "https")) {
    return invalid_argument("only http and https addresses are fetched");
  }
  out.tls = scheme == "https";
  out.port = out.tls ? kHttpsPort : kHttpPort;
  text.remove_prefix(colon + 3);
  const size_t end = std::min(text.find_first_of("/?#"), text.size());
  std::string_view authority = text.substr(0, end);
  std::string_view target = text.substr(end);
  if (target.find('#') != std::string_view::npos) {
    return invalid_argument("the address has a fragment");
  }
  if (authority.find('@') != std::string_view::npos) {
    return invalid_argument("the address names a user");
  }
  if (const size_t port = authority.find(':'); port != std::string_view::npos) {
    if (authority.substr(port + 1) != std::to_string(out.port)) {
      return invalid_argument(
          fmt::format("only port {} is fetched from over {}", out.port, scheme));
    }
    authority = authority.substr(0, port);
  }
  out.host = authority;
  std::transform(out.host.begin(), out.host.end(), out.host.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  TRIPTYCH_RETURN_IF_ERROR(check_host(out.host));
  out.target = target.starts_with('/') ? std::string(target) : "/" + std::string(target);
  return out;
}

bool is_listed_host(std::string_view host, std::string_view pattern) {
  if (!pattern.starts_with("*.")) return host == pattern;
  pattern.remove_prefix(1);
  return host.size() > pattern.size() && host.ends_with(pattern);
}

}  // namespace triptych
