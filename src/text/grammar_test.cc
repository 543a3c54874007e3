#include "text/grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parity/text_goldens.h"

namespace triptych {
namespace {

using ::testing::HasSubstr;

bool allows(const std::vector<uint32_t>& mask, TokenId id) {
  return (mask[static_cast<size_t>(id) / 32] >> (id % 32)) & 1;
}

class GrammarKinds : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    tokenizer_ = goldens::load_tokenizer(GetParam());
    auto compiler = GrammarCompiler::make(tokenizer_);
    ASSERT_TRUE(compiler.is_ok()) << compiler.status().message();
    compiler_ = *compiler;
  }
  /// Takes an allowed token again and again, EOS where it is allowed; blanks only where nothing
  /// else is allowed, or wherever they are.
  std::string generate(GrammarMatcher& matcher, size_t max_tokens, bool wants_blanks = false) {
    std::vector<TokenId> ids;
    std::vector<uint32_t> mask(matcher.mask_words());
    while (!matcher.is_stopped() && ids.size() < max_tokens) {
      EXPECT_TRUE(matcher.compute_mask(mask).is_ok());
      TokenId next = *tokenizer_->eos_id();
      if (allows(mask, next)) break;
      for (TokenId id = 0; id < static_cast<TokenId>(tokenizer_->vocab_size()); ++id) {
        if (!allows(mask, id)) continue;
        const std::string text = tokenizer_->decode({&id, 1}, false);
        const bool blank = text.find_first_not_of(" \t\r\n") == std::string::npos;
        if (next == *tokenizer_->eos_id() || blank == wants_blanks) next = id;
      }
      EXPECT_TRUE(matcher.consume(next).is_ok());
      ids.push_back(next);
    }
    return tokenizer_->decode(ids, true);
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const GrammarCompiler> compiler_;
};

TEST_P(GrammarKinds, JsonSchemaGivesJson) {
  auto matcher = compiler_->compile(GrammarKind::kJsonSchema, R"({"type": "object",
      "properties": {"colour": {"enum": ["red", "blue"]}, "n": {"type": "integer", "minimum": 0,
      "maximum": 9}}, "required": ["colour", "n"], "additionalProperties": false})");
  ASSERT_TRUE(matcher.is_ok()) << matcher.status().message();
  std::string text = generate(*matcher, 100);
  const auto json = parse_json(text);
  ASSERT_TRUE(json.is_ok()) << text;
  EXPECT_TRUE(json->find("colour")->is_string());
  EXPECT_TRUE(json->find("n")->is_int());
  EXPECT_TRUE(matcher->is_accepting());
}

TEST_P(GrammarKinds, AModelThatLikesBlanksStillGivesJson) {
  auto matcher = compiler_->compile(GrammarKind::kJsonSchema, R"({"type": "object",
      "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": false})");
  ASSERT_TRUE(matcher.is_ok()) << matcher.status().message();
  const std::string text = generate(*matcher, 250, true);
  EXPECT_TRUE(parse_json(text).is_ok()) << text;
}

TEST_P(GrammarKinds, ChoiceAndRegexAndLark) {
  auto choice = compiler_->compile(GrammarKind::kChoice, R"x(["yes", "no (really)"])x");
  ASSERT_TRUE(choice.is_ok()) << choice.status().message();
  const std::string text = generate(*choice, 20);
  EXPECT_TRUE(text == "yes" || text == "no (really)") << text;
  auto regex = compiler_->compile(GrammarKind::kRegex, "[0-9]{3}");
  ASSERT_TRUE(regex.is_ok());
  EXPECT_EQ(generate(*regex, 20).size(), 3u);
  auto lark = compiler_->compile(GrammarKind::kLark, "start: \"a\" \"b\"");
  ASSERT_TRUE(lark.is_ok()) << lark.status().message();
  EXPECT_EQ(generate(*lark, 20), "ab");
}

INSTANTIATE_TEST_SUITE_P(Kinds, GrammarKinds,
                         ::testing::Values("llama2", "llama3", "qwen2", "demo"));

TEST(Grammar, RefusesWhatTheGrammarForbids) {
  const auto tokenizer = goldens::load_tokenizer("llama3");
  const auto compiler = GrammarCompiler::make(tokenizer);
  auto matcher = (*compiler)->compile(GrammarKind::kRegex, "ab");
  ASSERT_TRUE(matcher.is_ok());
  EXPECT_EQ(matcher->consume(*tokenizer->token_to_id("z")).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(matcher->consume(*tokenizer->token_to_id("a")).is_ok());
  EXPECT_FALSE(matcher->is_accepting());
  EXPECT_TRUE(matcher->consume(*tokenizer->token_to_id("b")).is_ok());
  EXPECT_TRUE(matcher->is_accepting());
  std::vector<uint32_t> mask(matcher->mask_words());
  EXPECT_FALSE(matcher->compute_mask(std::span(mask).first(1)).is_ok());
  if (matcher->is_stopped()) {
    EXPECT_EQ(matcher->compute_mask(mask).code(), StatusCode::kFailedPrecondition);
  }
  EXPECT_FALSE(matcher->consume(-1).is_ok());
}

TEST(Grammar, ErrorsHaveAText) {
  const auto compiler = GrammarCompiler::make(goldens::load_tokenizer("qwen2"));
  const std::pair<GrammarKind, const char*> cases[] = {
      {GrammarKind::kJsonSchema, "{"}, {GrammarKind::kJsonSchema, "{\"type\": 3}"},
      {GrammarKind::kRegex, "("},      {GrammarKind::kLark, "start: nothing"},
      {GrammarKind::kChoice, "[]"},    {GrammarKind::kChoice, "[1]"}};
  for (const auto& [kind, text] : cases) {
    const auto matcher = (*compiler)->compile(kind, text);
    EXPECT_EQ(matcher.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(matcher.status().message(), HasSubstr("grammar: ")) << text;
    EXPECT_EQ(matcher.status().message().find('\n'), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace triptych
