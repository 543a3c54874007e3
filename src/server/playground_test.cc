// The page at "/" as browsers get it, from a service without models.
#include "server/playground.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/http/http_server.h"
#include "server/http/test_client.h"
#include "server/openai/error.h"
#include "server/service.h"

namespace triptych {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string ask(Playground playground, const AccessControl& access, const std::string& request) {
  MetricsRegistry registry;
  Service service(std::vector<ServedModel>{}, access, registry, {.playground = playground});
  const auto server =
      http::Server::start(
          {.port = 0}, {},
          {.handler =
               [&](http::Request asked, std::shared_ptr<http::Exchange> exchange) {
                 service.handle(std::move(asked), std::move(exchange));
               },
           .refusal =
               [](int status, std::string_view reason) {
                 return openai::error_response(status, reason);
               },
           .admission = [&](const http::Request& head) { return service.admit(head); },
           .observer = nullptr})
          .value();
  http::TestClient client(server->port());
  client.send(request);
  return client.receive_all();
}

/// The value of a header; empty when there is none.
std::string header_of(const std::string& answer, const std::string& name) {
  const size_t at = answer.find("\r\n" + name + ": ");
  if (at == std::string::npos) return {};
  const size_t begin = at + name.size() + 4;
  return answer.substr(begin, answer.find("\r\n", begin) - begin);
}

TEST(PlaygroundPage, ComesWithAStrictPolicy) {
  const std::string answer = ask(Playground::kOn, AccessControl(), http::get("/"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(header_of(answer, "Content-Type"), "text/html; charset=utf-8");
  const std::string policy = header_of(answer, "Content-Security-Policy");
  EXPECT_THAT(policy, StartsWith("default-src 'none'"));
  EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_EQ(header_of(answer, "X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(header_of(answer, "Referrer-Policy"), "no-referrer");
  EXPECT_EQ(header_of(answer, "Access-Control-Allow-Origin"), "");
  EXPECT_EQ(answer.substr(answer.find("\r\n\r\n") + 4), kPlaygroundPage);
  EXPECT_THAT(answer, HasSubstr("Triptych"));
  const std::string head =
      ask(Playground::kOn, AccessControl(), "HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(header_of(head, "Content-Length"), header_of(answer, "Content-Length"));
}

TEST(PlaygroundPage, CanBeTakenAwayOrGivenWithoutAKey) {
  EXPECT_THAT(ask(Playground::kOff, AccessControl(), http::get("/")), StartsWith("HTTP/1.1 404 "));
  AccessControl locked;
  locked.add("ann", "secret");
  const std::string refusal = ask(Playground::kOn, locked, http::get("/"));
  EXPECT_THAT(refusal, StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(refusal, HasSubstr("--playground open"));
  EXPECT_THAT(ask(Playground::kOn, locked,
                  "GET / HTTP/1.1\r\nConnection: close\r\nAuthorization: Bearer secret\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask(Playground::kOff, locked, http::get("/")), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(ask(Playground::kOpen, locked, http::get("/")), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask(Playground::kOpen, locked, http::get("/v1/models")), StartsWith("HTTP/1.1 401 "));
}

}  // namespace
}  // namespace triptych
