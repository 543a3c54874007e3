// Tools, over HTTP.
#include "cli/test_served.h"

namespace triptych::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

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

}  // namespace
}  // namespace triptych::cli
