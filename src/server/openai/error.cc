#include "server/openai/error.h"

#include <fmt/format.h>

namespace triptych::openai {
namespace {

constexpr int kRetryMs = 1000;
constexpr std::string_view kFault = "the server failed to answer; its log says why";

struct Parts {
  std::string param;    // empty: none
  std::string message;  // with the path in front of it
};

/// "request: messages[0].role: expected a string" tells of messages[0].role, and so does what the
/// layers below say of a part that was named so; "n is 9; it must be ..." tells of n.
Parts parts_of(std::string_view message) {
  const std::string prefix = fmt::format("{}: ", kBody);
  if (message.starts_with(prefix)) message.remove_prefix(prefix.size());
  const size_t end = message.find_first_not_of(
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.[]");
  Parts out{{}, std::string(message)};
  if (end == std::string_view::npos || end == 0) return out;
  for (const std::string_view next : {": ", " is ", " has "}) {
    if (message.substr(end).starts_with(next)) out.param = message.substr(0, end);
  }
  return out;
}

std::string_view type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return status < 500 ? "invalid_request_error" : "server_error";
  }
}

Json make_json(int status, const Parts& parts, std::string_view code) {
  Json error = Json::object();
  error.set("message", Json::string(parts.message));
  error.set("type", Json::string(std::string(type_of(status))));
  error.set("param", parts.param.empty() ? Json() : Json::string(parts.param));
  error.set("code", code.empty() ? Json() : Json::string(std::string(code)));
  Json out = Json::object();
  out.set("error", std::move(error));
  return out;
}

std::string_view code_of(StatusCode code) {
  switch (code) {
    case StatusCode::kOutOfRange:
      return "limit_exceeded";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kResourceExhausted:
      return "overloaded";
    case StatusCode::kUnavailable:
      return "unavailable";
    case StatusCode::kDeadlineExceeded:
      return "deadline_exceeded";
    default:
      return "";
  }
}

http::Response make_response(int status, const Json& body, int retry_ms = kRetryMs) {
  http::Response out{.status = status, .headers = {}, .body = body.dump()};
  if (status == 429 || status == 503) {
    out.headers = {{"Retry-After", fmt::format("{}", (retry_ms + 999) / 1000)},
                   {"retry-after-ms", fmt::format("{}", retry_ms)}};
  } else if (status >= 500) {
    out.headers = {{"x-should-retry", "false"}};
  }
  return out;
}

}  // namespace

int http_status(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 200;
    case StatusCode::kInvalidArgument:
    case StatusCode::kDataLoss:
    case StatusCode::kUnsupported:
    case StatusCode::kOutOfRange:
    case StatusCode::kFailedPrecondition:
      return 400;
    case StatusCode::kPermissionDenied:
      return 403;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kResourceExhausted:
      return 429;
    case StatusCode::kCancelled:
      return 499;
    case StatusCode::kUnavailable:
      return 503;
    case StatusCode::kDeadlineExceeded:
      return 504;
    case StatusCode::kInternal:
      break;
  }
  return 500;
}

Json error_json(const Status& status) {
  const int http = http_status(status.code());
  // What went wrong inside is for the log alone.
  if (http == 500) return make_json(http, {{}, std::string(kFault)}, "");
  if (http != 400) return make_json(http, {{}, status.message()}, code_of(status.code()));
  return make_json(http, parts_of(status.message()), code_of(status.code()));
}

http::Response error_response(const Status& status) {
  return make_response(http_status(status.code()), error_json(status));
}

http::Response rate_limit_response(std::string_view message, int retry_ms) {
  const Json body = make_json(429, {{}, std::string(message)}, "rate_limit_exceeded");
  return make_response(429, body, retry_ms);
}

http::Response error_response(int http_status, std::string_view message) {
  return make_response(http_status, make_json(http_status, {{}, std::string(message)}, ""));
}

}  // namespace triptych::openai
