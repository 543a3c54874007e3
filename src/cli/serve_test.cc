// The server with the demo model behind it, as clients see it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/serve.h"
#include "server/http/test_client.h"

namespace triptych::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kPicture = "tests/eval/demo/images/074.jpg";
constexpr const char* kQuestion = "What does the text say?";
constexpr const char* kAnswer = "AHEW";
constexpr int64_t kMaxRequests = 24;
constexpr const char* kCrash = "!crash";

std::string bytes_of_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

/// What a picture does whose decoder has a hole.
Result<PixelTensor> crash_when_told(std::span<const std::byte> bytes, const ImageRecipe& recipe,
                                    const DecodeOptions& options, ThreadPool& pool) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.ends_with(kCrash)) __builtin_trap();
  return preprocess_image(bytes, recipe, options, pool);
}

std::string base64_of(const std::string& data) {
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
std::vector<std::string> events_of(std::string answer) {
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

TEST_F(Serve, ToolsNeedATemplateThatTakesThem) {
  const std::string answer = chat(
      R"("messages": [{"role": "user", "content": "hi"}],
         "tools": [{"type": "function", "function": {"name": "f"}}])");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 400"));
  const Json error = *body_of(answer).find("error");
  EXPECT_EQ(error.find("param")->string_value(), "tools");
  EXPECT_THAT(error.find("message")->string_value(), HasSubstr("no place for tools"));
}

/// The demo model behind a template of another family: its answers make no sense, but calls that
/// are forced upon it have to.
class ServeTools : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    session_ =
        Session::open({.model = "models/demo",
                       .chat_template_file = "tests/parity/goldens/text/templates/qwen_tools.jinja",
                       .max_sequences = 4})
            .value();
    ServedModel model{.names = {"demo"},
                      .engine = nullptr,
                      .prep = session_->shared_prep(),
                      .defaults = {},
                      .context_tokens = session_->context_tokens(),
                      .loaded = 1};
    model.engine = session_->start(8);
    service_ = std::make_unique<Service>(std::vector<ServedModel>{model}, access_, registry_);
    server_ = http::Server::start({.port = 0}, {}, callbacks_of(*service_)).value();
  }
  static void TearDownTestSuite() {
    server_.reset();
    service_.reset();
    session_.reset();
  }
  static std::string chat(const std::string& fields) {
    http::TestClient client(server_->port());
    client.send(http::post("/v1/chat/completions", R"({"model": "demo",
      "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": null,
        "tool_calls": [{"id": "c", "type": "function", "function":
          {"name": "paint", "arguments": "{\"colour\": \"red\"}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "done"}],
      "tools": [{"type": "function", "function": {"name": "paint", "parameters":
        {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}},
         "required": ["colour"], "additionalProperties": false}}},
        {"type": "function", "function": {"name": "stop", "parameters":
        {"type": "object", "additionalProperties": false}}}],)" +
                                                       fields + "}"));
    return client.receive_all();
  }
  static void expect_call(const Json& call, const std::string& name) {
    EXPECT_EQ(call.find("type")->string_value(), "function");
    EXPECT_EQ(call.find("id")->string_value().size(), 9u);
    const Json& function = *call.find("function");
    if (!name.empty()) {
      EXPECT_EQ(function.find("name")->string_value(), name);
    }
    const Result<Json> arguments = parse_json(function.find("arguments")->string_value());
    ASSERT_TRUE(arguments.is_ok()) << arguments.status().message();
    if (function.find("name")->string_value() != "paint") return;
    EXPECT_THAT(arguments->find("colour")->string_value(), testing::AnyOf("red", "blue"));
  }

  static inline std::unique_ptr<Session> session_;
  static inline AccessControl access_;
  static inline MetricsRegistry registry_;
  static inline std::unique_ptr<Service> service_;
  static inline std::unique_ptr<http::Server> server_;
};

TEST_F(ServeTools, CallsTheToolThatIsNamed) {
  const std::string answer =
      chat(R"("tool_choice": {"type": "function", "function": {"name": "paint"}})");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
  const Json body = *parse_json(answer.substr(answer.find("\r\n\r\n") + 4));
  const Json& choice = body.find("choices")->elements().at(0);
  EXPECT_EQ(choice.find("finish_reason")->string_value(), "stop");
  const Json& message = *choice.find("message");
  EXPECT_TRUE(message.find("content")->is_null());
  ASSERT_EQ(message.find("tool_calls")->elements().size(), 1u);
  expect_call(message.find("tool_calls")->elements()[0], "paint");
}

TEST_F(ServeTools, StreamsARequiredCall) {
  const std::vector<std::string> events =
      events_of(chat(R"("tool_choice": "required", "parallel_tool_calls": false, "stream": true)"));
  ASSERT_GE(events.size(), 3u);
  EXPECT_EQ(events.back(), "[DONE]");
  int n_calls = 0;
  std::string finish;
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const Json chunk = *parse_json(events[i]);
    const Json& choice = chunk.find("choices")->elements().at(0);
    const Json& delta = *choice.find("delta");
    EXPECT_EQ(delta.find("role") != nullptr, i == 0);
    if (const Json* calls = delta.find("tool_calls"); calls != nullptr) {
      ++n_calls;
      expect_call(calls->elements().at(0), "");
      EXPECT_EQ(calls->elements().at(0).find("index")->int_value(), 0);
    } else if (const Json* content = delta.find("content"); content != nullptr) {
      EXPECT_EQ(content->string_value(), "");
    }
    if (!choice.find("finish_reason")->is_null()) {
      finish = choice.find("finish_reason")->string_value();
    }
  }
  EXPECT_EQ(n_calls, 1);
  EXPECT_EQ(finish, "tool_calls");
}

TEST_F(ServeTools, AnswersWithoutACallToo) {
  const std::string answer = chat(R"("max_tokens": 8)");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
  const Json body = *parse_json(answer.substr(answer.find("\r\n\r\n") + 4));
  const Json& message = *body.find("choices")->elements().at(0).find("message");
  EXPECT_TRUE(message.find("content")->is_string());
  EXPECT_EQ(message.find("tool_calls"), nullptr);
}

TEST_F(Serve, AnswersAQuestionAboutAPicture) {
  const std::string answer = chat(picture_question());
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
  const Json json = body_of(answer);
  EXPECT_EQ(json.find("object")->string_value(), "chat.completion");
  EXPECT_THAT(json.find("id")->string_value(), StartsWith("chatcmpl-"));
  EXPECT_EQ(json.find("model")->string_value(), "demo");
  const Json& choice = json.find("choices")->elements().at(0);
  EXPECT_EQ(choice.find("message")->find("content")->string_value(), kAnswer);
  EXPECT_EQ(choice.find("message")->find("role")->string_value(), "assistant");
  EXPECT_EQ(choice.find("finish_reason")->string_value(), "stop");
  // Field case F38: the rows of a picture count as tokens of the prompt.
  const Json& usage = *json.find("usage");
  EXPECT_EQ(usage.find("prompt_tokens_details")->find("image_tokens")->int_value(), 576);
  EXPECT_GT(usage.find("prompt_tokens")->int_value(), 576);
  EXPECT_EQ(
      usage.find("total_tokens")->int_value(),
      usage.find("prompt_tokens")->int_value() + usage.find("completion_tokens")->int_value());
}

TEST_F(Serve, ReadsPicturesOfItsFoldersWhereItIsToldTo) {
  const std::string folder = std::filesystem::canonical("tests/eval/demo/images").string();
  MetricsRegistry registry;
  Service service({*model_}, access_, registry,
                  {.sources = MediaSource::make({.hosts = {}, .folders = {folder}}).value()});
  const auto server = http::Server::start({.port = 0}, {}, callbacks_of(service)).value();
  const auto ask = [&](const std::string& url) {
    http::TestClient client(server->port());
    client.send(http::post("/v1/chat/completions",
                           R"({"model": "demo", "messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": ")" +
                               url + R"("}}, {"type": "text", "text": ")" + kQuestion +
                               R"("}]}]})"));
    return client.receive_all();
  };
  EXPECT_THAT(ask("file://" + folder + "/074.jpg"), HasSubstr(kAnswer));
  const std::string missing = ask("file://" + folder + "/missing.jpg");
  EXPECT_THAT(missing, StartsWith("HTTP/1.1 400"));
  EXPECT_EQ(body_of(missing).find("error")->find("param")->string_value(),
            "messages[0].content[0].image_url.url");
  EXPECT_THAT(ask("https://example.org/a.png"), HasSubstr("fetches nothing from other hosts"));
}

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

TEST_F(Serve, StreamsTheSameAnswer) {
  const std::string answer = chat(picture_question() + R"(, "stream": true)");
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/event-stream"));
  const std::vector<std::string> events = events_of(answer);
  ASSERT_GE(events.size(), 3u);
  EXPECT_EQ(events.back(), "[DONE]");
  std::string text;
  std::string id;
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const Json chunk = parse_json(events[i]).value();
    EXPECT_EQ(chunk.find("object")->string_value(), "chat.completion.chunk");
    if (i == 0) id = chunk.find("id")->string_value();
    EXPECT_EQ(chunk.find("id")->string_value(), id);
    EXPECT_EQ(chunk.find("usage"), nullptr);  // not asked for
    const Json& choice = chunk.find("choices")->elements().at(0);
    const Json& delta = *choice.find("delta");
    EXPECT_EQ(delta.find("role") != nullptr, i == 0);
    if (const Json* content = delta.find("content")) text += content->string_value();
    EXPECT_EQ(choice.find("finish_reason")->is_null(), i + 2 < events.size());
  }
  EXPECT_EQ(text, kAnswer);
}

// Field case F38.
TEST_F(Serve, TellsTheCountsBehindTheLastChoiceWhenAsked) {
  const std::vector<std::string> events = events_of(
      chat(R"("messages": [{"role": "user", "content": "What is it?"}], "n": 2, "stream": true,
              "max_tokens": 4, "stream_options": {"include_usage": true})"));
  ASSERT_GE(events.size(), 4u);
  int64_t n_finished = 0;
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    const Json chunk = parse_json(events[i]).value();
    ASSERT_NE(chunk.find("usage"), nullptr);
    EXPECT_TRUE(chunk.find("usage")->is_null());
    n_finished += !chunk.find("choices")->elements().at(0).find("finish_reason")->is_null();
  }
  EXPECT_EQ(n_finished, 2);
  const Json last = parse_json(events[events.size() - 2]).value();
  EXPECT_TRUE(last.find("choices")->elements().empty());
  EXPECT_GT(last.find("usage")->find("completion_tokens")->int_value(), 0);
}

/// Whole, and summing to the total.
void expect_timings(const Json* usage) {
  ASSERT_NE(usage, nullptr);
  const Json* timings = usage->find("timings");
  ASSERT_NE(timings, nullptr);
  double sum = 0;
  for (const auto& [name, ms] : timings->members()) {
    EXPECT_THAT(name, testing::EndsWith("_ms"));
    EXPECT_GE(ms.number_value(), 0);
    if (name != "total_ms") sum += ms.number_value();
  }
  EXPECT_EQ(timings->members().size(), kStages + 1);
  EXPECT_GT(timings->find("decode_ms")->number_value(), 0);
  EXPECT_NEAR(timings->find("total_ms")->number_value(), sum, 1e-6);
}

TEST_F(Serve, TellsTheTimesOfTheStagesWhenAsked) {
  const Json whole = body_of(chat(picture_question() + R"(, "timings": true)"));
  expect_timings(whole.find("usage"));
  const std::vector<std::string> events = events_of(
      chat(picture_question() +
           R"(, "timings": true, "stream": true, "stream_options": {"include_usage": true})"));
  ASSERT_GE(events.size(), 3u);
  const Json last = parse_json(events[events.size() - 2]).value();
  expect_timings(last.find("usage"));
  EXPECT_EQ(body_of(chat(picture_question())).find("usage")->find("timings"), nullptr);
}

TEST_F(Serve, CompletesAPromptAsItIs) {
  const std::string prompt = "<|user|>Describe the picture.<|assistant|>";
  const auto complete = [&](const std::string& fields) {
    return ask(http::post("/v1/completions",
                          R"({"model": "demo", "prompt": ")" + prompt + "\", " + fields + "}"));
  };
  const Json plain = body_of(complete(R"("max_tokens": 6)"));
  EXPECT_EQ(plain.find("object")->string_value(), "text_completion");
  EXPECT_THAT(plain.find("id")->string_value(), StartsWith("cmpl-"));
  const std::string text = plain.find("choices")->elements().at(0).find("text")->string_value();
  EXPECT_FALSE(text.empty());
  const Json echoed = body_of(complete(R"("max_tokens": 6, "echo": true)"));
  EXPECT_EQ(echoed.find("choices")->elements().at(0).find("text")->string_value(), prompt + text);
  const std::vector<std::string> events =
      events_of(complete(R"("max_tokens": 6, "echo": true, "stream": true)"));
  std::string streamed;
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const Json chunk = parse_json(events[i]).value();
    EXPECT_EQ(chunk.find("object")->string_value(), "text_completion");
    streamed += chunk.find("choices")->elements().at(0).find("text")->string_value();
  }
  EXPECT_EQ(streamed, prompt + text);
}

TEST_F(Serve, EndsAtAStopStringAndAtTheLimit) {
  const Json stopped = body_of(chat(picture_question() + R"(, "stop": "E")"));
  const Json& choice = stopped.find("choices")->elements().at(0);
  EXPECT_EQ(choice.find("message")->find("content")->string_value(), "AH");
  EXPECT_EQ(choice.find("finish_reason")->string_value(), "stop");
  const Json cut = body_of(chat(picture_question() + R"(, "max_tokens": 1)"));
  EXPECT_EQ(cut.find("choices")->elements().at(0).find("finish_reason")->string_value(), "length");
  EXPECT_EQ(cut.find("usage")->find("completion_tokens")->int_value(), 1);
}

TEST_F(Serve, TellsHowLikelyEachTokenWas) {
  const std::string fields = picture_question() + R"(, "logprobs": true, "top_logprobs": 2)";
  const Json json = body_of(chat(fields));
  const Json& content = *json.find("choices")->elements().at(0).find("logprobs")->find("content");
  ASSERT_EQ(content.elements().size(), 4u);
  std::string text;
  for (const Json& token : content.elements()) {
    text += token.find("token")->string_value();
    EXPECT_LE(token.find("logprob")->number_value(), 0);
    ASSERT_EQ(token.find("bytes")->elements().size(), token.find("token")->string_value().size());
    const std::vector<Json>& top = token.find("top_logprobs")->elements();
    ASSERT_EQ(top.size(), 2u);
    // Greedy: the drawn one is the likeliest.
    EXPECT_EQ(top[0].find("token")->string_value(), token.find("token")->string_value());
    EXPECT_GE(top[0].find("logprob")->number_value(), top[1].find("logprob")->number_value());
  }
  EXPECT_EQ(text, kAnswer);
  int64_t n_streamed = 0;
  const std::vector<std::string> events = events_of(chat(fields + R"(, "stream": true)"));
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const Json chunk = parse_json(events[i]).value();
    const Json& logprobs = *chunk.find("choices")->elements().at(0).find("logprobs");
    if (!logprobs.is_null()) n_streamed += std::ssize(logprobs.find("content")->elements());
  }
  EXPECT_EQ(n_streamed, 4);
}

TEST_F(Serve, KeepsToASchema) {
  const Json json = body_of(chat(
      picture_question() +
      R"(, "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema":
           {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"],
            "additionalProperties": false}}})"));
  const Json& message = *json.find("choices")->elements().at(0).find("message");
  const Result<Json> answer = parse_json(message.find("content")->string_value());
  ASSERT_TRUE(answer.is_ok());
  EXPECT_TRUE(answer->find("n")->is_int());
}

TEST_F(Serve, NamesThePartThatIsNoPicture) {
  const std::string answer = chat(
      R"("messages": [{"role": "user", "content": [{"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,Zm9vYmFy"}}]}])");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 "));
  EXPECT_EQ(body_of(answer).find("error")->find("param")->string_value(),
            "messages[0].content[1].image_url.url");
}

TEST_F(Serve, RefusesWhatItCannotAnswer) {
  EXPECT_THAT(ask(http::post("/v1/chat/completions", "{")), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask(http::post("/v1/chat/completions", "[]")), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(
      ask(http::post("/v1/chat/completions",
                     R"({"model": "gpt", "messages": [{"role": "user", "content": "a"}]})")),
      StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask(http::get("/v1/nothing")), StartsWith("HTTP/1.1 404 "));
  const std::string wrong_method = ask(http::get("/v1/chat/completions"));
  EXPECT_THAT(wrong_method, StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(wrong_method, HasSubstr("Allow: POST"));
  std::string words;
  for (int i = 0; i < 3000; ++i) words += "red ";
  const std::string long_prompt =
      chat(R"("messages": [{"role": "user", "content": ")" + words + "\"}]");
  EXPECT_THAT(long_prompt, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(long_prompt, HasSubstr("context"));
}

TEST_F(Serve, TellsTokensAndTheirText) {
  const auto post = [](const char* path, const std::string& fields) {
    return ask(http::post(path, R"({"model": "demo", )" + fields + "}"));
  };
  const Json whole = body_of(post("/tokenize", R"("prompt": "What color is it?")"));
  const int64_t count = whole.find("count")->int_value();
  EXPECT_EQ(whole.find("tokens")->elements().size(), static_cast<size_t>(count));
  EXPECT_EQ(whole.find("max_model_len")->int_value(), 2048);
  EXPECT_TRUE(whole.find("token_strs")->is_null());
  const Json plain = body_of(post("/tokenize", R"("prompt": "What color is it?",
      "add_special_tokens": false, "return_token_strs": true)"));
  EXPECT_EQ(plain.find("token_strs")->elements().size(), plain.find("tokens")->elements().size());
  const Json back = body_of(post("/detokenize", "\"tokens\": " + plain.find("tokens")->dump()));
  EXPECT_EQ(back.find("prompt")->string_value(), "What color is it?");
  // The ids that an answer is counted for.
  const Json asked = body_of(post("/tokenize", picture_question()));
  const Json answered = body_of(chat(picture_question()));
  EXPECT_EQ(asked.find("count")->int_value(),
            answered.find("usage")->find("prompt_tokens")->int_value());
  for (const char* fields : {R"("prompt": 5)", R"("other": 5)", R"("prompt": "a", "messages": [])",
                             R"("messages": [])"}) {
    EXPECT_THAT(post("/tokenize", fields), StartsWith("HTTP/1.1 400 ")) << fields;
  }
  for (const char* fields :
       {R"("tokens": "a")", R"("tokens": [-1])", R"("tokens": [704000])", R"("tokens": [1.5])"}) {
    EXPECT_THAT(post("/detokenize", fields), StartsWith("HTTP/1.1 400 ")) << fields;
  }
  EXPECT_THAT(post("/tokenize", "\"prompt\": \"" + std::string((1 << 20) + 1, 'a') + "\""),
              HasSubstr("may have 1048576"));
}

TEST_F(Serve, ListsModelsAndHealth) {
  const Json models = body_of(ask(http::get("/v1/models")));
  ASSERT_EQ(models.find("data")->elements().size(), 2u);
  EXPECT_EQ(models.find("data")->elements()[0].find("id")->string_value(), "demo");
  for (const char* path : {"/livez", "/readyz", "/startupz", "/health"}) {
    EXPECT_THAT(ask(http::get(path)), StartsWith("HTTP/1.1 200 ")) << path;
  }
}

TEST_F(Serve, EveryAnswerCarriesTheIdOfItsRequest) {
  EXPECT_THAT(ask(http::get("/v1/models")), HasSubstr("x-request-id: req_"));
  EXPECT_THAT(chat(picture_question() + R"(, "stream": true)"), HasSubstr("x-request-id: req_"));
  const auto with_id = [](const std::string& id) {
    return ask("GET /nothing HTTP/1.1\r\nConnection: close\r\nX-Request-Id: " + id + "\r\n\r\n");
  };
  EXPECT_THAT(with_id("a-1.b_2"), HasSubstr("x-request-id: a-1.b_2\r\n"));
  for (const std::string& id : {std::string("a b"), std::string("a\"b"), std::string(129, 'a')}) {
    EXPECT_THAT(with_id(id), HasSubstr("x-request-id: req_")) << id;
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

TEST_F(Serve, MoreThanItCanHoldIsToldWhenToTryAgain) {
  const std::string request =
      http::post("/v1/chat/completions",
                 R"({"model": "demo", "stream": true, "ignore_eos": true, "max_tokens": 1500,
          "messages": [{"role": "user", "content": "What is it?"}]})");
  std::vector<std::unique_ptr<http::TestClient>> clients;
  for (int64_t i = 0; i < kMaxRequests; ++i) {
    clients.push_back(std::make_unique<http::TestClient>(server_->port()));
    clients.back()->send(request);
  }
  ASSERT_TRUE(engine_becomes([](const EngineStatus& s) { return n_open(s) == kMaxRequests; }));
  const std::string answer = ask(request);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 429 "));
  EXPECT_THAT(answer, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_THAT(answer, HasSubstr("retry-after-ms: 1000\r\n"));
  EXPECT_EQ(body_of(answer).find("error")->find("code")->string_value(), "overloaded");
  EXPECT_THAT(ask(http::get("/health")), StartsWith("HTTP/1.1 200 "));
}

TEST_F(Serve, AHostilePictureCostsItsOwnRequestAndNothingElse) {
  ASSERT_TRUE(engine_becomes([](const EngineStatus& s) { return n_open(s) == 0; }));
  const std::string hostile = question_about(bytes_of_file(kPicture) + kCrash);
  for (int i = 0; i < 3; ++i) {
    const std::string answer = chat(hostile);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 "));
    const Json error = *body_of(answer).find("error");
    EXPECT_THAT(error.find("message")->string_value(), HasSubstr("decoder crashed"));
    EXPECT_EQ(error.find("param")->string_value(), "messages[0].content[0].image_url.url");
    EXPECT_THAT(chat(picture_question()), HasSubstr(kAnswer));
  }
  EXPECT_THAT(ask(http::get("/health")), StartsWith("HTTP/1.1 200 "));
}

// Field case F30: whoever leaves takes nothing with him.
TEST_F(Serve, AClientThatLeavesEndsItsRequest) {
  for (int i = 0; i < 20; ++i) {
    http::TestClient client(server_->port());
    client.send(http::post(
        "/v1/chat/completions",
        R"({"model": "demo", "stream": true, "ignore_eos": true, )" + picture_question() + "}"));
    if (i % 2 == 0) client.receive_until("data: ");
  }
  // A preparation that has begun keeps its memory to its end.
  EXPECT_TRUE(
      engine_becomes([](const EngineStatus& s) { return n_open(s) == 0 && s.host_bytes == 0; }));
  const EngineStatus status = engine_->snapshot();
  EXPECT_EQ(status.free_pages + status.evictable_pages, status.total_pages);
}

}  // namespace
}  // namespace triptych::cli
