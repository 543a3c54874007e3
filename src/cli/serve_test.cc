// The server with the demo model behind it, as clients see it.
#include <filesystem>

#include "cli/test_served.h"

namespace triptych::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

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
