#include "text/grammar_constraint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "parity/text_goldens.h"

namespace triptych {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Source = std::shared_ptr<const TokenConstraintSource>;

std::vector<TokenId> allowed(TokenConstraint& constraint) {
  std::vector<uint32_t> mask(constraint.mask_words());
  const Status status = constraint.allowed(mask);
  EXPECT_TRUE(status.is_ok()) << status.message();
  std::vector<TokenId> out;
  for (size_t id = 0; id < mask.size() * 32; ++id) {
    if (mask[id / 32] >> (id % 32) & 1) out.push_back(static_cast<TokenId>(id));
  }
  return out;
}

bool has(const std::vector<TokenId>& ids, TokenId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

class Constraint : public ::testing::Test {
 protected:
  std::shared_ptr<const Tokenizer> tokenizer_ = goldens::load_tokenizer("llama3");
  TokenId id(const char* token) const { return *tokenizer_->token_to_id(token); }
  std::unique_ptr<TokenConstraint> start(const GrammarConstraints& grammars, GrammarKind kind,
                                         const std::string& text) const {
    const Result<Source> source = grammars.compile({kind, text, "--grammar"});
    EXPECT_TRUE(source.is_ok()) << source.status().message();
    return std::move((*source)->start()).value();
  }
};

TEST_F(Constraint, EveryEndTokenOfTheModelIsAllowedWhereTheGrammarMayEnd) {
  const TokenId other = id("!");  // stands for a second end token
  const GrammarConstraints grammars(tokenizer_, {*tokenizer_->eos_id(), other, -1, 1 << 30});
  const auto c = start(grammars, GrammarKind::kRegex, "ab*");
  EXPECT_FALSE(has(allowed(*c), *tokenizer_->eos_id()));
  EXPECT_FALSE(has(allowed(*c), other));
  ASSERT_TRUE(c->accept(id("a")).is_ok());
  EXPECT_TRUE(has(allowed(*c), *tokenizer_->eos_id()));
  EXPECT_TRUE(has(allowed(*c), other));
  EXPECT_TRUE(has(allowed(*c), id("b")));
  EXPECT_FALSE(c->finished());
}

TEST_F(Constraint, TheTokenizersEndIsNotAllowedWhereTheModelHasAnother) {
  const GrammarConstraints grammars(tokenizer_, {id("!")});
  const auto c = start(grammars, GrammarKind::kRegex, "a?");
  EXPECT_FALSE(has(allowed(*c), *tokenizer_->eos_id()));
  EXPECT_TRUE(has(allowed(*c), id("!")));
  const GrammarConstraints plain(tokenizer_, {});
  EXPECT_TRUE(has(allowed(*start(plain, GrammarKind::kRegex, "a?")), *tokenizer_->eos_id()));
}

TEST_F(Constraint, IsFinishedWhereNothingMayFollow) {
  const GrammarConstraints grammars(tokenizer_, {*tokenizer_->eos_id()});
  const auto c = start(grammars, GrammarKind::kChoice, R"(["a"])");
  EXPECT_FALSE(c->finished());
  EXPECT_FALSE(c->accept(id("b")).is_ok());
  const auto d = start(grammars, GrammarKind::kChoice, R"(["a"])");
  ASSERT_TRUE(d->accept(id("a")).is_ok());
  EXPECT_TRUE(d->finished());
  EXPECT_EQ(allowed(*d), std::vector<TokenId>{*tokenizer_->eos_id()});
}

TEST_F(Constraint, AnswersOfOneRequestShareNothing) {
  const GrammarConstraints grammars(tokenizer_, {*tokenizer_->eos_id()});
  const auto source = grammars.compile({GrammarKind::kRegex, "[ab]{40}", ""});
  ASSERT_TRUE(source.is_ok());
  std::vector<std::thread> threads;
  for (const char* letter : {"a", "b", "a"}) {
    threads.emplace_back([&, token = id(letter)] {
      auto c = std::move((*source)->start()).value();
      for (int i = 0; i < 40; ++i) {
        EXPECT_TRUE(has(allowed(*c), token));
        EXPECT_TRUE(c->accept(token).is_ok());
      }
      EXPECT_TRUE(c->finished());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Constraint, ErrorsNameTheField) {
  const GrammarConstraints grammars(tokenizer_, {});
  const auto bad = grammars.compile(
      {GrammarKind::kJsonSchema, R"({"type": 3})", "response_format.json_schema.schema"});
  EXPECT_EQ(bad.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(bad.status().message(), StartsWith("response_format.json_schema.schema: grammar: "));
}

TEST_F(Constraint, DeepAndLongGrammarsAreRefusedBeforeTheCompiler) {
  const GrammarConstraints grammars(tokenizer_, {});
  for (GrammarKind kind : {GrammarKind::kJsonSchema, GrammarKind::kRegex, GrammarKind::kLark}) {
    for (const char* bracket : {"(", "[", "{\"a\":"}) {
      std::string deep = kind == GrammarKind::kLark ? "start: " : "";
      for (int i = 0; i < 1000; ++i) deep += bracket;
      const auto source = grammars.compile({kind, deep, ""});
      EXPECT_EQ(source.status().code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(source.status().message(), HasSubstr("nested deeper"));
    }
    EXPECT_EQ(grammars.compile({kind, std::string(70000, 'a'), ""}).status().code(),
              StatusCode::kOutOfRange);
  }
  EXPECT_TRUE(grammars
                  .compile({GrammarKind::kRegex,
                            [] {
                              std::string escaped;
                              for (int i = 0; i < 200; ++i) escaped += "\\(";
                              return escaped;
                            }(),
                            ""})
                  .is_ok());
}

TEST_F(Constraint, AChainOfRulesAsLongAsTheLimitLetsThroughDoesNotOverflow) {
  std::string chain = "start: a0\n";
  int n = 0;
  for (; chain.size() + 30 < kMaxGrammarBytes; ++n) {
    chain += "a" + std::to_string(n) + ":a" + std::to_string(n + 1) + "\n";
  }
  chain += "a" + std::to_string(n) + ":\"b\"\n";
  const GrammarConstraints grammars(tokenizer_, {});
  const auto source = grammars.compile({GrammarKind::kLark, chain, ""});
  if (!source.is_ok()) {
    EXPECT_EQ(source.status().code(), StatusCode::kInvalidArgument);
    return;
  }
  EXPECT_EQ(allowed(*std::move((*source)->start()).value()), std::vector<TokenId>{id("b")});
}

TEST(ConstraintDeadEnd, ATextThatTheVocabularyCannotSpellIsTheRequestsError) {
  TokenizerConfig config;
  config.named_tokens = {{"eos_token", "</s>"}};
  const auto tokenizer = Tokenizer::from_json(R"({"version": "1.0", "added_tokens": [{"id": 2,
      "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false,
      "normalized": false, "special": true}], "normalizer": null, "pre_tokenizer": null,
      "post_processor": null, "decoder": null, "model": {"type": "BPE",
      "vocab": {"a": 0, "b": 1, "</s>": 2}, "merges": []}})",
                                              config);
  ASSERT_TRUE(tokenizer.is_ok()) << tokenizer.status().message();
  const GrammarConstraints grammars(*tokenizer, {2});
  const auto source = grammars.compile({GrammarKind::kRegex, "a[z0-9]", ""});
  ASSERT_TRUE(source.is_ok()) << source.status().message();
  const auto c = std::move((*source)->start()).value();
  EXPECT_EQ(allowed(*c), std::vector<TokenId>{0});
  ASSERT_TRUE(c->accept(0).is_ok());
  std::vector<uint32_t> mask(c->mask_words());
  for (int again = 0; again < 2; ++again) {
    const Status status = c->allowed(mask);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("the grammar cannot be followed further"));
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
    EXPECT_FALSE(c->finished());
  }
}

}  // namespace
}  // namespace triptych
