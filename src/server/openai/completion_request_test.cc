#include "server/openai/completion_request.h"

#include <gtest/gtest.h>

#include "server/openai/error.h"

namespace triptych::openai {
namespace {

Result<Call> read(std::string_view text) {
  TRIPTYCH_ASSIGN_OR_RETURN(const Json json, parse_json(text));
  return read_completion_call(JsonRef(json, std::string(kBody)), {});
}

TEST(CompletionRequest, ReadsAPromptAsItIs) {
  for (const char* text : {R"({"model": "m", "prompt": "a <image> b"})",
                           R"({"model": "m", "prompt": ["a <image> b"]})"}) {
    const Result<Call> call = read(text);
    ASSERT_TRUE(call.is_ok()) << call.status().message();
    EXPECT_EQ(call->request.raw_prompt, "a <image> b");
    EXPECT_TRUE(call->request.messages.empty());
    EXPECT_EQ(call->request.sampling.max_tokens, 16);
    EXPECT_EQ(call->echo, "");
  }
  const Result<Call> call =
      read(R"({"prompt": "a", "echo": true, "n": 2, "best_of": 2, "max_tokens": 5, "stream": true,
               "suffix": null, "logprobs": null})");
  ASSERT_TRUE(call.is_ok()) << call.status().message();
  EXPECT_EQ(call->echo, "a");
  EXPECT_EQ(call->request.sampling.max_tokens, 5);
  EXPECT_TRUE(call->stream);
}

TEST(CompletionRequest, NamesWhatIsWrong) {
  const std::pair<const char*, const char*> kBad[] = {
      {R"({})", "prompt"},
      {R"({"prompt": ""})", "prompt"},
      {R"({"prompt": 5})", "prompt"},
      {R"({"prompt": []})", "prompt"},
      {R"({"prompt": ["a", "b"]})", "prompt"},
      {R"({"prompt": [1, 2]})", "prompt"},
      {R"({"prompt": [[1]]})", "prompt[0]"},
      {R"({"prompt": "a", "suffix": "b"})", "suffix"},
      {R"({"prompt": "a", "best_of": 3})", "best_of"},
      {R"({"prompt": "a", "logprobs": 3})", "logprobs"},
      {R"({"prompt": "a", "logprobs": true})", "logprobs"},
      {R"({"prompt": "a", "echo": 1})", "echo"},
      {R"({"prompt": "a", "messages": []})", "messages"},
  };
  for (const auto& [text, param] : kBad) {
    const Result<Call> call = read(text);
    ASSERT_FALSE(call.is_ok()) << text;
    const Json error = error_json(call.status());
    EXPECT_EQ(error.find("error")->find("param")->string_value(), param) << call.status().message();
  }
}

}  // namespace
}  // namespace triptych::openai
