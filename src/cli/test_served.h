#pragma once

// The server with the demo model behind it, as clients see it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "cli/serve.h"
#include "server/http/test_client.h"

namespace triptych::cli {

constexpr const char* kPicture = "tests/eval/demo/images/074.jpg";
constexpr const char* kQuestion = "What does the text say?";
constexpr const char* kAnswer = "AHEW";
constexpr int64_t kMaxRequests = 24;
constexpr const char* kCrash = "!crash";

inline std::string bytes_of_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

/// What a picture does whose decoder has a hole.
inline Result<PixelTensor> crash_when_told(std::span<const std::byte> bytes,
                                           const ImageRecipe& recipe, const DecodeOptions& options,
                                           ThreadPool& pool) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.ends_with(kCrash)) __builtin_trap();
  return preprocess_image(bytes, recipe, options, pool);
}

inline std::string base64_of(const std::string& data) {
  static constexpr char kAlphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < data.size(); i += 3) {
    uint32_t three = 0;
    for (size_t j = i; j < i + 3; ++j) {
      three = three << 8 | (j < data.size() ? static_cast<uint8_t>(data[j]) : 0);
    }
    for (size_t j = 0; j < 4; ++j) {
      out += i + j > data.size() ? '=' : kAlphabet[three >> (18 - 6 * j) & 63];
    }
  }
  return out;
}

class Serve : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    sandbox_ = Sandbox::start({.work = &crash_when_told}).value();
    session_ =
        Session::open({.model = "models/demo", .max_sequences = 4, .sandbox = sandbox_}).value();
    ServedModel model{.names = {"demo", "other"},
                      .engine = nullptr,
                      .prep = session_->shared_prep(),
                      .defaults = default_sampling(session_->runner().model().spec),
                      .context_tokens = session_->context_tokens(),
                      .loaded = 1};
    model.engine = session_->start(kMaxRequests);
    engine_ = model.engine;
    model_ = std::make_unique<ServedModel>(model);
    service_ = std::make_unique<Service>(std::vector<ServedModel>{model}, access_, registry_);
    server_ = http::Server::start({.port = 0}, {}, callbacks_of(*service_)).value();
  }
  static void TearDownTestSuite() {
    server_.reset();
    service_.reset();
    model_.reset();
    engine_.reset();
    session_.reset();
    sandbox_.reset();
  }

  static std::string ask(const std::string& request) {
    http::TestClient client(server_->port());
    client.send(request);
    return client.receive_all();
  }
  static std::string chat(const std::string& fields) {
    return ask(http::post("/v1/chat/completions", "{\"model\": \"demo\", " + fields + "}"));
  }
  static int64_t n_open(const EngineStatus& status) {
    return status.n_preparing + status.n_waiting + status.n_running;
  }
  /// False when it does not within ten seconds.
  static bool engine_becomes(const std::function<bool(const EngineStatus&)>& wanted) {
    for (int i = 0; i < 1000; ++i) {
      if (wanted(engine_->snapshot())) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  static std::string question_about(const std::string& picture) {
    return R"("messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url":
      "data:image/jpeg;base64,)" +
           base64_of(picture) + R"("}}, {"type": "text", "text": ")" + kQuestion + "\"}]}]";
  }
  static std::string picture_question() { return question_about(bytes_of_file(kPicture)); }
  static Json body_of(const std::string& answer) {
    Result<Json> json = parse_json(answer.substr(answer.find("\r\n\r\n") + 4));
    EXPECT_TRUE(json.is_ok()) << answer;
    return json.is_ok() ? *json : Json();
  }

  static inline std::shared_ptr<Sandbox> sandbox_;
  static inline std::unique_ptr<Session> session_;
  static inline std::shared_ptr<MultiModalEngine> engine_;
  static inline std::unique_ptr<ServedModel> model_;
  static inline AccessControl access_;
  static inline MetricsRegistry registry_;
  static inline std::unique_ptr<Service> service_;
  static inline std::unique_ptr<http::Server> server_;
};

/// The events of a stream, without the chunks that they came in.
inline std::vector<std::string> events_of(std::string answer) {
  std::string body;
  answer.erase(0, answer.find("\r\n\r\n") + 4);
  while (!answer.empty()) {
    const size_t line = answer.find("\r\n");
    const size_t n = std::stoul(answer.substr(0, line), nullptr, 16);
    body += answer.substr(line + 2, n);
    answer.erase(0, line + 2 + n + 2);
  }
  std::vector<std::string> out;
  for (size_t at = 0; at < body.size();) {
    const size_t end = body.find("\n\n", at);
    EXPECT_EQ(body.substr(at, 6), "data: ");
    out.push_back(body.substr(at + 6, end - at - 6));
    at = end + 2;
  }
  return out;
}

}  // namespace triptych::cli
