// Keys, their limits and the audit log, over HTTP.
#include <filesystem>

#include "cli/test_served.h"

namespace triptych::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ServeWithKeys : public Serve {
 protected:
  void SetUp() override {
    const NewApiKey ann = new_api_key("ann").value();
    ASSERT_TRUE(
        keys_.load(ann.line + " requests_per_min=2 media_bytes_per_min=1000000", "k").is_ok());
    key_ = ann.key;
    std::filesystem::remove(log_);
    audit_ = AuditLog::open(log_).value();
    own_service_ = std::make_unique<Service>(std::vector<ServedModel>{*model_}, keys_,
                                             registry_own_, ServiceParts{.audit = audit_.get()});
    own_server_ = http::Server::start({.port = 0}, {}, callbacks_of(*own_service_)).value();
  }
  std::string ask_with_key(const std::string& fields) {
    const std::string body = "{\"model\": \"demo\", " + fields + "}";
    http::TestClient client(own_server_->port());
    client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: test\r\nConnection: close\r\n" +
                ("Authorization: Bearer " + key_) +
                "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    return client.receive_all();
  }
  /// The lines of the audit log, once there are as many.
  std::vector<Json> lines(size_t n) const {
    std::vector<Json> out;
    for (int i = 0; i < 1000 && out.size() < n; ++i) {
      out.clear();
      std::ifstream file(log_);
      for (std::string line; std::getline(file, line);) out.push_back(*parse_json(line));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return out;
  }

  const std::string log_ = testing::TempDir() + "triptych_audit.jsonl";
  std::string key_;
  AccessControl keys_;
  MetricsRegistry registry_own_;
  std::unique_ptr<AuditLog> audit_;
  std::unique_ptr<Service> own_service_;
  std::unique_ptr<http::Server> own_server_;
};

TEST_F(ServeWithKeys, LimitsOfTheKeyHoldAndTheLogSaysWhoAskedWhat) {
  EXPECT_THAT(ask_with_key(picture_question()), HasSubstr(kAnswer));
  lines(1);  // each request's line comes when all who know of it have let go of it
  const std::string stream = ask_with_key(picture_question() + ", \"stream\": true");
  EXPECT_THAT(stream, StartsWith("HTTP/1.1 200"));
  lines(2);
  const std::string third = ask_with_key(picture_question());
  EXPECT_THAT(third, StartsWith("HTTP/1.1 429"));
  EXPECT_THAT(third, HasSubstr("rate_limit_exceeded"));
  EXPECT_THAT(third, HasSubstr("retry-after-ms: "));
  lines(3);
  key_ = "wrong";
  EXPECT_THAT(ask_with_key(picture_question()), StartsWith("HTTP/1.1 401"));

  const std::vector<Json> log = lines(4);
  ASSERT_EQ(log.size(), 4u);
  const Json& first = log[0];
  EXPECT_EQ(first.find("key")->string_value(), "ann");
  EXPECT_EQ(first.find("path")->string_value(), "/v1/chat/completions");
  EXPECT_EQ(first.find("model")->string_value(), "demo");
  EXPECT_EQ(first.find("status")->int_value(), 200);
  EXPECT_EQ(first.find("finish")->string_value(), "stop");
  EXPECT_EQ(first.find("media")->int_value(), 1);
  EXPECT_GT(first.find("prompt_tokens")->int_value(), 576);
  EXPECT_GT(first.find("completion_tokens")->int_value(), 0);
  EXPECT_EQ(log[1].find("status")->int_value(), 200);
  EXPECT_EQ(log[2].find("status")->int_value(), 429);
  EXPECT_EQ(log[3].find("status")->int_value(), 401);
  EXPECT_TRUE(log[3].find("key")->is_null());
  for (const Json& line : log) {
    EXPECT_EQ(line.dump().find(kAnswer), std::string::npos) << "nothing of what was said";
    EXPECT_EQ(line.dump().find("What does"), std::string::npos);
  }
}

TEST_F(Serve, WithKeysEveryRouteNeedsOne) {
  AccessControl access;
  access.add("ann", "secret");
  MetricsRegistry registry;
  Service guarded({*model_}, access, registry);
  const auto server = http::Server::start({.port = 0}, {}, callbacks_of(guarded)).value();
  const auto ask_with = [&](std::string request, const std::string& header) {
    request.insert(request.find("\r\n") + 2, header);
    http::TestClient client(server->port());
    client.send(request);
    return client.receive_all();
  };
  const std::string body =
      R"({"model": "demo", "max_tokens": 1, "messages": [{"role": "user", "content": "a"}]})";
  const std::vector<std::string> requests = {
      http::get("/readyz"),    http::get("/startupz"),    http::get("/health"),
      http::get("/v1/models"), http::get("/metrics"),     http::get("/v1/other"),
      http::get("/"),          http::post("/livezz", ""), http::post("/v1/chat/completions", body)};
  for (const std::string& request : requests) {
    for (const char* header : {"", "Authorization: Bearer wrong\r\n"}) {
      const std::string answer = ask_with(request, header);
      EXPECT_THAT(answer, StartsWith("HTTP/1.1 401 ")) << request;
      EXPECT_THAT(answer, HasSubstr("WWW-Authenticate: Bearer"));
      EXPECT_THAT(answer, HasSubstr("authentication_error"));
    }
  }
  // Before the body has come.
  EXPECT_THAT(ask_with("POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n", ""),
              StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(ask_with(http::get("/livez"), ""), StartsWith("HTTP/1.1 200 "));
  const std::string key = "Authorization: Bearer secret\r\n";
  EXPECT_THAT(ask_with(http::get("/v1/models"), key), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask_with(http::post("/v1/chat/completions", body), key), StartsWith("HTTP/1.1 200 "));
}

}  // namespace
}  // namespace triptych::cli
