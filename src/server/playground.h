#pragma once

#include <string_view>

#include "server/http/http.h"

namespace triptych {

/// The page at "/" and its Content-Security-Policy, as the build made them from web/.
extern const std::string_view kPlaygroundPage;
extern const std::string_view kPlaygroundPolicy;

/// The page as an answer. It brings its own script and style, whose hashes the policy names, and
/// may talk to this server alone.
http::Response playground_response();

}  // namespace triptych
