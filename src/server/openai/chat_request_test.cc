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
         "logprobs": true, "top_logprobs": 3, "presence_penalty": null)");
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
      {R"("tools": [{}])", "tools"},
      {R"("logprobs": 3)", "logprobs"},
      {R"("top_logprobs": 3)", "top_logprobs"},
      {R"("logprobs": true, "top_logprobs": 21)", "top_logprobs"},
      {R"("stream": "yes")", "stream"},
      {R"("stream_options": {"include_usage": true})", "stream_options"},
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
