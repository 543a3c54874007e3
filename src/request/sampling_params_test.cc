#include "request/sampling_params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace triptych {
namespace {

using testing::HasSubstr;

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

void expect_bad(const char* field, const SamplingParams& params,
                const SamplingLimits& limits = {}) {
  const Status status = validate(params, limits);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << field;
  EXPECT_THAT(status.message(), HasSubstr(field));
}

TEST(SamplingParams, DefaultsAreValid) { EXPECT_TRUE(validate(SamplingParams{}).is_ok()); }

TEST(SamplingParams, OffValuesAreValid) {
  for (int64_t off : {-1, 0}) EXPECT_TRUE(validate(SamplingParams{.top_k = off}).is_ok());
}

TEST(SamplingParams, EachBadNumberNamesItsField) {
  struct Case {
    const char* field;
    double SamplingParams::*member;
    std::vector<double> good;
    std::vector<double> bad;
  };
  const Case cases[] = {
      {"temperature", &SamplingParams::temperature, {0, 1e-300, 100}, {-1, 100.5}},
      {"top_p", &SamplingParams::top_p, {1e-9, 1}, {0, -0.1, 1.5}},
      {"min_p", &SamplingParams::min_p, {0, 1}, {-0.1, 2}},
      {"typical_p", &SamplingParams::typical_p, {1e-9, 1}, {0, 1.1}},
      {"repetition_penalty", &SamplingParams::repetition_penalty, {0.1, 5}, {0, -1}},
      {"presence_penalty", &SamplingParams::presence_penalty, {-2, 2}, {-2.1, 3}},
      {"frequency_penalty", &SamplingParams::frequency_penalty, {-2, 2}, {-2.1, 3}},
  };
  for (const Case& c : cases) {
    SamplingParams p;
    for (double v : c.good) {
      p.*c.member = v;
      EXPECT_TRUE(validate(p).is_ok()) << c.field << " " << v;
    }
    for (double v : c.bad) {
      p.*c.member = v;
      expect_bad(c.field, p);
    }
    for (double v : {kNan, kInf, -kInf}) {
      p.*c.member = v;
      expect_bad(c.field, p);
    }
  }
}

TEST(SamplingParams, EachBadCountNamesItsField) {
  expect_bad("top_k", {.top_k = -5});
  expect_bad("max_tokens", {.max_tokens = -1});
  expect_bad("min_tokens", {.min_tokens = -1});
  expect_bad("min_tokens", {.min_tokens = 6, .max_tokens = 5});
  expect_bad("n", {.n = 0});
  expect_bad("n", {.n = 129});
  expect_bad("n", {.n = 9}, {.max_n = 8});
  expect_bad("top_logprobs", {.logprobs = true, .top_logprobs = 21});
  expect_bad("top_logprobs", {.logprobs = true, .top_logprobs = -1});
  expect_bad("top_logprobs", {.top_logprobs = 2});
  expect_bad("stop", {.stop = {"a", ""}});
  EXPECT_TRUE(
      validate({.n = 128, .logprobs = true, .top_logprobs = 20, .min_tokens = 5, .max_tokens = 5})
          .is_ok());
  EXPECT_TRUE(validate({.min_tokens = 5}).is_ok());
}

TEST(SamplingParams, IdsAreCheckedAgainstTheVocabularyWhereItIsKnown) {
  expect_bad("logit_bias", {.logit_bias = {{-1, 1}}});
  expect_bad("stop_token_ids", {.stop_token_ids = {-1}});
  EXPECT_TRUE(validate({.logit_bias = {{99, 1}}, .stop_token_ids = {99}}).is_ok());
  EXPECT_TRUE(
      validate({.logit_bias = {{99, 1}}, .stop_token_ids = {99}}, {.vocab_size = 100}).is_ok());
  expect_bad("logit_bias: 105", {.logit_bias = {{105, 1}}}, {.vocab_size = 100});
  expect_bad("stop_token_ids: 100", {.stop_token_ids = {3, 100}}, {.vocab_size = 100});
  expect_bad("0 to 99", {.stop_token_ids = {3, 100}}, {.vocab_size = 100});
}

TEST(SamplingParams, BiasHasARangeACountAndOneEntryAToken) {
  for (double bias : {kNan, kInf, -kInf, 100.5, -101.0}) {
    expect_bad("logit_bias of token 7", {.logit_bias = {{7, bias}}});
  }
  EXPECT_TRUE(validate({.logit_bias = {{7, -100}, {8, 100}}}).is_ok());
  expect_bad("logit_bias has token 7 twice", {.logit_bias = {{7, 1}, {7, 2}}});
  SamplingParams many;
  for (int32_t id = 0; id < 301; ++id) many.logit_bias.emplace_back(id, 1);
  expect_bad("logit_bias has 301", many);
}

TEST(SamplingParams, AGrammarDecidesWhereTheAnswerEnds) {
  expect_bad("ignore_eos", {.ignore_eos = true, .grammar = GrammarSpec{}});
}

}  // namespace
}  // namespace triptych
