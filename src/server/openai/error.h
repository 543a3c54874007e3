#pragma once

#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "server/http/http.h"

namespace triptych::openai {

/// Where requests' JSON comes from, in the paths of JsonRef; error_json() takes it off again.
inline constexpr std::string_view kBody = "request";

/// The HTTP status of an error class.
int http_status(StatusCode code);

/// {"error": {message, type, param, code}}, all four present. `param` is the JSON path that the
/// message begins with, or null. A fault of ours (500) does not show its message.
Json error_json(const Status& status);

/// A whole answer; one that a retry may get past says when.
http::Response error_response(const Status& status);
/// To a client that has used up what its key may ask for.
http::Response rate_limit_response(std::string_view message, int retry_ms);
/// The same for what has a status of its own: a route, a method, a body that was not read.
http::Response error_response(int http_status, std::string_view message);

}  // namespace triptych::openai
