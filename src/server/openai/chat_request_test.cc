#include "server/openai/chat_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/openai/error.h"

namespace triptych::openai {
namespace {

using testing::HasSubstr;

Result<Call> read(std::string_view text, const CallLimits& limits = {}) {
  TRIPTYCH_ASSIGN_OR_RETURN(const Json json, parse_json(text));
  return read_chat_call(JsonRef(json, std::string(kBody)), {.repetition_penalty = 1.5}, limits);
}

/// A request with these fields beside a message.
Result<Call> with(const std::string& fields) {
  return read(R"({"model": "m", "messages": [{"role": "user", "content": "hi"}], )" + fields + "}");
}

std::string param_of(const Status& status) {
  const Json error = error_json(status);
  return error.find("error")->find("param")->string_value();
}

TEST(ChatRequest, ReadsTextsAndPicturesInTheirOrder) {
  const Result<Call> call = read(R"({"model": "m", "messages": [
    {"role": "developer", "content": "short"},
    {"role": "user", "content": [
      {"type": "text", "text": "a"},
      {"type": "image_url", "image_url": {"url": "data:image/png;base64,Zm9v", "detail": "low"}},
      {"type": "text", "text": "b"},
      {"type": "image_url", "image_url": {"url": "data:;base64,YmFy"}}]},
    {"role": "assistant", "content": "c"}]})");
  ASSERT_TRUE(call.is_ok()) << call.status().message();
  const Request& request = call->request;
  ASSERT_EQ(request.messages.size(), 3u);
  EXPECT_EQ(request.messages[0].role, "system");
  ASSERT_EQ(request.messages[1].parts.size(), 4u);
  EXPECT_EQ(request.messages[1].parts[0].text, "a");
  EXPECT_EQ(request.messages[1].parts[1].media, 0u);
  EXPECT_EQ(request.messages[1].parts[3].media, 1u);
  ASSERT_EQ(request.media.size(), 2u);
  EXPECT_EQ(*request.media[1].bytes, "bar");
  EXPECT_EQ(request.media[1].name, "messages[1].content[3].image_url.url");
  EXPECT_EQ(request.sampling.repetition_penalty, 1.5);
  EXPECT_FALSE(call->stream);
}

TEST(ChatRequest, ReadsSampling) {
  const Result<Call> call = with(
      R"("temperature": 0.5, "top_p": 0.9, "seed": 7, "n": 2, "stop": ["x", "y"],
         "max_completion_tokens": 9, "logit_bias": {"12": -3.5}, "stream": true,
         "stream_options": {"include_usage": true}, "user": "someone", "tools": [],
         "logprobs": true, "top_logprobs": 3, "presence_penalty": null, "timings": true)");
  ASSERT_TRUE(call.is_ok()) << call.status().message();
  const SamplingParams& sampling = call->request.sampling;
  EXPECT_EQ(sampling.temperature, 0.5);
  EXPECT_EQ(sampling.top_p, 0.9);
  EXPECT_EQ(sampling.seed, 7u);
  EXPECT_EQ(sampling.n, 2);
  EXPECT_EQ(sampling.stop, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(sampling.max_tokens, 9);
  ASSERT_EQ(sampling.logit_bias.size(), 1u);
  EXPECT_EQ(sampling.logit_bias[0], (std::pair<int32_t, double>(12, -3.5)));
  EXPECT_TRUE(sampling.logprobs);
  EXPECT_EQ(sampling.top_logprobs, 3);
  EXPECT_TRUE(call->stream);
  EXPECT_TRUE(call->include_usage);
  EXPECT_TRUE(call->timings);
  EXPECT_TRUE(with(R"("timings": true)")->timings);
}

TEST(ChatRequest, ReadsTheFormOfTheAnswer) {
  EXPECT_FALSE(with(R"("response_format": {"type": "text"})")->request.sampling.grammar);
  EXPECT_EQ(with(R"("response_format": {"type": "json_object"})")->request.sampling.grammar->text,
            R"({"type": "object"})");
  const Result<Call> call = with(
      R"("response_format": {"type": "json_schema", "json_schema":
         {"name": "x", "strict": true, "schema": {"type": "integer"}}})");
  ASSERT_TRUE(call.is_ok()) << call.status().message();
  EXPECT_EQ(call->request.sampling.grammar->kind, GrammarKind::kJsonSchema);
  EXPECT_EQ(call->request.sampling.grammar->text, R"({"type":"integer"})");
}

TEST(ChatRequest, NamesWhatIsWrong) {
  const std::pair<const char*, const char*> kBad[] = {
      {R"("temperature": "hot")", "temperature"},
      {R"("temperature": -1)", "temperature"},
      {R"("n": 9)", "n"},
      {R"("max_tokens": 0)", "max_tokens"},
      {R"("max_completion_tokens": -5)", "max_completion_tokens"},
      {R"("stop": 5)", "stop"},
      {R"("stop": [5])", "stop[0]"},
      {R"("logit_bias": {"x": 1})", "logit_bias"},
      {R"("logit_bias": {"5": "a"})", "logit_bias"},
      {R"("logit_bias": [1])", "logit_bias"},
      {R"("temprature": 1)", "temprature"},
      {R"("logprobs": 3)", "logprobs"},
      {R"("top_logprobs": 3)", "top_logprobs"},
      {R"("logprobs": true, "top_logprobs": 21)", "top_logprobs"},
      {R"("stream": "yes")", "stream"},
      {R"("stream_options": {"include_usage": true})", "stream_options"},
      {R"("timings": 1)", "timings"},
      {R"("timings": true, "stream": true)", "timings"},
      {R"("response_format": {"type": "xml"})", "response_format.type"},
      {R"("response_format": {"type": "json_schema"})", "response_format.json_schema.schema"},
  };
  for (const auto& [fields, param] : kBad) {
    const Result<Call> call = with(fields);
    ASSERT_FALSE(call.is_ok()) << fields;
    EXPECT_EQ(call.status().code(), StatusCode::kInvalidArgument) << fields;
    EXPECT_EQ(param_of(call.status()), param) << call.status().message();
  }
}

constexpr const char* kTools =
    R"("tools": [{"type": "function", "function": {"name": "f", "description": "d",
       "parameters": {"type": "object"}, "strict": true}},
       {"type": "function", "function": {"name": "g-2"}}])";

Result<Call> with_tools(const std::string& fields) { return with(kTools + (", " + fields)); }

TEST(ChatRequest, ReadsTools) {
  const Result<Call> call = with(kTools);
  ASSERT_TRUE(call.is_ok()) << call.status().message();
  EXPECT_EQ(call->request.tools.elements().size(), 2u);
  ASSERT_TRUE(call->tools);
  EXPECT_TRUE(call->tools->several);
  EXPECT_FALSE(call->tools->forced);
  EXPECT_FALSE(with_tools(R"("tool_choice": "auto")")->tools->forced);

  const Result<Call> none = with_tools(R"("tool_choice": "none")");
  EXPECT_FALSE(none->tools);
  EXPECT_TRUE(none->request.tools.is_null());

  const Result<Call> required =
      with_tools(R"("tool_choice": "required", "parallel_tool_calls": false)");
  ASSERT_TRUE(required.is_ok()) << required.status().message();
  EXPECT_FALSE(required->tools->several);
  EXPECT_EQ(required->tools->forced->names, (std::vector<std::string>{"f", "g-2"}));
  EXPECT_FALSE(required->tools->forced->several);

  const Result<Call> named =
      with_tools(R"("tool_choice": {"type": "function", "function": {"name": "f"}})");
  ASSERT_TRUE(named.is_ok()) << named.status().message();
  EXPECT_EQ(named->tools->named, "f");
  EXPECT_EQ(named->tools->forced->names, std::vector<std::string>{"f"});

  for (const char* nothing : {R"("tools": [])", R"("tools": null, "tool_choice": "auto")"}) {
    EXPECT_FALSE(with(nothing)->tools) << nothing;
  }
}

TEST(ChatRequest, NamesWhatIsWrongWithTools) {
  const std::pair<std::string, const char*> kBad[] = {
      {R"("tools": {})", "tools"},
      {R"("tools": [{}])", "tools[0].type"},
      {R"("tools": [{"type": "function"}])", "tools[0].function.name"},
      {R"("tools": [{"type": "function", "function": {"name": "a b"}}])", "tools[0].function.name"},
      {R"("tools": [{"type": "function", "function": {"name": ""}}])", "tools[0].function.name"},
      {R"("tools": [{"type": "function", "function": {"name": "f", "parameters": 1}}])",
       "tools[0].function.parameters"},
      {R"("tools": [{"type": "function", "function": {"name": "f"}},
          {"type": "function", "function": {"name": "f"}}])",
       "tools[1].function.name"},
      {R"("tool_choice": "required")", "tool_choice"},
      {kTools + std::string(R"(, "tool_choice": "any")"), "tool_choice"},
      {kTools + std::string(R"(, "tool_choice": 5)"), "tool_choice"},
      {kTools + std::string(R"(, "tool_choice": {"type": "function", "function": {"name": "h"}})"),
       "tool_choice.function.name"},
      {kTools + std::string(R"(, "parallel_tool_calls": 1)"), "parallel_tool_calls"},
      {kTools + std::string(R"(, "response_format": {"type": "json_object"})"), "response_format"},
  };
  for (const auto& [fields, param] : kBad) {
    const Result<Call> call = with(fields);
    ASSERT_FALSE(call.is_ok()) << fields;
    EXPECT_EQ(param_of(call.status()), param) << call.status().message();
  }
  std::string many;
  for (int i = 0; i < 129; ++i) {
    many += (i == 0 ? "" : ", ") +
            (R"({"type": "function", "function": {"name": "f)" + std::to_string(i) + "\"}}");
  }
  EXPECT_EQ(param_of(with("\"tools\": [" + many + "]").status()), "tools");
}

TEST(ChatRequest, ReadsCallsAndWhatTheyGave) {
  const Result<Call> call = read(R"({"messages": [
    {"role": "user", "content": "hi", "name": "ann"},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
      "function": {"name": "f", "arguments": "{\"a\": 1}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "5"}]})");
  ASSERT_TRUE(call.is_ok()) << call.status().message();
  const std::vector<RequestMessage>& messages = call->request.messages;
  EXPECT_EQ(messages[0].name, "ann");
  EXPECT_EQ(messages[1].tool_calls.elements().size(), 1u);
  EXPECT_TRUE(messages[1].parts.empty());
  EXPECT_EQ(messages[2].tool_call_id, "c1");

  const std::pair<const char*, const char*> kBad[] = {
      {R"({"role": "assistant", "content": null})", "content"},
      {R"({"role": "assistant", "content": null, "tool_calls": []})", "content"},
      {R"({"role": "user", "content": "a", "tool_calls": [{}]})", "tool_calls"},
      {R"({"role": "assistant", "tool_calls": {}})", "tool_calls"},
      {R"({"role": "assistant", "tool_calls": [{"type": "function"}]})", "tool_calls[0].id"},
      {R"({"role": "assistant", "tool_calls": [{"id": "c", "type": "x"}]})", "tool_calls[0].type"},
      {R"({"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function":
          {"name": "f", "arguments": {}}}]})",
       "tool_calls[0].function.arguments"},
      {R"({"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function":
          {"name": "f", "arguments": "[]"}}]})",
       "tool_calls[0].function.arguments"},
      {R"({"role": "tool", "content": "5"})", "tool_call_id"},
  };
  for (const auto& [message, param] : kBad) {
    const Result<Call> bad = read(std::string(R"({"messages": [)") + message + "]}");
    ASSERT_FALSE(bad.is_ok()) << message;
    EXPECT_EQ(param_of(bad.status()), std::string("messages[0].") + param) << message;
  }
}

TEST(ChatRequest, NamesTheMessageOrPartThatIsWrong) {
  const std::pair<const char*, const char*> kBad[] = {
      {R"({})", "messages"},
      {R"({"messages": []})", "messages"},
      {R"({"messages": "hi"})", "messages"},
      {R"({"messages": ["hi"]})", "messages[0]"},
      {R"({"messages": [{"content": "hi"}]})", "messages[0].role"},
      {R"({"messages": [{"role": "king", "content": "hi"}]})", "messages[0].role"},
      {R"({"messages": [{"role": "user"}]})", "messages[0].content"},
      {R"({"messages": [{"role": "user", "content": 5}]})", "messages[0].content"},
      {R"({"messages": [{"role": "user", "content": [{"type": "smell"}]}]})",
       "messages[0].content[0].type"},
      {R"({"messages": [{"role": "user", "content": [{"type": "text"}]}]})",
       "messages[0].content[0].text"},
      {R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})",
       "messages[0].content[0].image_url.url"},
      {R"({"messages": [{"role": "user", "content":
          [{"type": "image_url", "image_url": {"url": "data:image/png;base64,!"}}]}]})",
       "messages[0].content[0].image_url.url"},
  };
  for (const auto& [text, param] : kBad) {
    const Result<Call> call = read(text);
    ASSERT_FALSE(call.is_ok()) << text;
    EXPECT_EQ(param_of(call.status()), param) << call.status().message();
  }
}

// Field case F20: nothing that a client names is fetched or read.
TEST(ChatRequest, FetchesNothing) {
  for (const std::string url :
       {"http://127.0.0.1/a.png", "http://[::1]/a.png", "https://a/b.png", "http://0x7f000001/",
        "file:///etc/hostname", "/etc/hostname", "../a.png", "ftp://a/b", "\\\\host\\a.png"}) {
    Json image = Json::object();
    image.set("url", Json::string(url));
    const Result<Call> call =
        read(R"({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": )" +
             image.dump() + "}]}]}");
    ASSERT_FALSE(call.is_ok()) << url;
    EXPECT_EQ(call.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(call.status().message(), HasSubstr("fetches nothing"));
  }
}

TEST(ChatRequest, RefusesPartsOfOtherKindsByName) {
  for (const std::string type : {"input_audio", "video_url", "audio_url", "file"}) {
    const Result<Call> call =
        read(R"({"messages": [{"role": "user", "content": [{"type": ")" + type + R"("}]}]})");
    ASSERT_FALSE(call.is_ok()) << type;
    EXPECT_EQ(call.status().code(), StatusCode::kUnsupported);
    EXPECT_THAT(call.status().message(), HasSubstr(type));
  }
}

TEST(ChatRequest, BoundsMessagesPartsAndPictures) {
  const CallLimits limits{.max_parts = 3, .max_media = 1};
  const std::string text = R"({"type": "text", "text": "a"})";
  const std::string picture =
      R"({"type": "image_url", "image_url": {"url": "data:image/png;base64,Zm9v"}})";
  const auto call = [&](const std::string& parts) {
    return read(R"({"messages": [{"role": "user", "content": [)" + parts + "]}]}", limits);
  };
  EXPECT_TRUE(call(text + "," + picture).is_ok());
  EXPECT_FALSE(call(text + "," + text + "," + picture).is_ok());
  EXPECT_FALSE(call(picture + "," + picture).is_ok());
}

}  // namespace
}  // namespace triptych::openai
