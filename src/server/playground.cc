#include "server/playground.h"

namespace triptych {

http::Response playground_response() {
  return {.content_type = "text/html; charset=utf-8",
          .headers = {{"Content-Security-Policy", std::string(kPlaygroundPolicy)},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-cache"}},
          .body = std::string(kPlaygroundPage)};
}

}  // namespace triptych
