#include "engine/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/token_draw.h"
#include "ref/random_data.h"
#include "ref/sampling_ref.h"

namespace triptych {
namespace {

using testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();

SamplingParams seeded(uint64_t seed) { return {.temperature = 1, .seed = seed}; }

SamplerSetup setup(int64_t n_known = 1 << 20) { return {.n_known = n_known}; }

/// The next token; -1 with a failed expectation when there is none.
int32_t next(Sampler& sampler, const std::vector<float>& logits) {
  SamplerScratch scratch;
  const Result<DrawnToken> drawn = sampler.sample(logits, scratch);
  EXPECT_TRUE(drawn.is_ok()) << drawn.status().message();
  return drawn.is_ok() ? drawn->token : -1;
}

int32_t first(const SamplingParams& params, const std::vector<float>& logits) {
  Sampler sampler(params, setup());
  return next(sampler, logits);
}

StatusCode error(Sampler& sampler, const std::vector<float>& logits) {
  SamplerScratch scratch;
  return sampler.sample(logits, scratch).status().code();
}

/// An answer over logits that change from step to step.
std::vector<int32_t> run(Sampler& sampler, int64_t begin, int64_t end) {
  std::vector<int32_t> out;
  for (int64_t i = begin; i < end; ++i) {
    out.push_back(next(sampler, ref::random_floats(50, static_cast<uint32_t>(i))));
    EXPECT_TRUE(sampler.accept(out.back()).is_ok());
  }
  return out;
}

/// Allows a set of tokens at each step, token 9 (the end) behind the last.
class Script : public TokenConstraint {
 public:
  explicit Script(std::vector<std::vector<int32_t>> steps) : steps_(std::move(steps)) {}
  size_t mask_words() const override { return 1; }
  Status allowed(std::span<uint32_t> mask) override {
    ++n_masks;
    mask[0] = step_ == steps_.size() ? 1u << 9 : 0;
    if (step_ == steps_.size()) return Status::ok();
    for (int32_t id : steps_[step_]) mask[0] |= 1u << id;
    return mask[0] != 0 ? Status::ok() : invalid_argument("dead end");
  }
  Status accept(int32_t) override {
    ++step_;
    return Status::ok();
  }
  bool finished() const override { return step_ > steps_.size(); }

  int n_masks = 0;

 private:
  std::vector<std::vector<int32_t>> steps_;
  size_t step_ = 0;
};

SamplerSetup scripted(std::vector<std::vector<int32_t>> steps) {
  SamplerSetup out = setup();
  out.eos_ids = {9};
  out.constraint = std::make_unique<Script>(std::move(steps));
  return out;
}

TEST(Sampler, GreedyTakesTheFirstOfTheLargestWhateverElseIsSet) {
  const SamplingParams p{.top_k = 5, .top_p = 0.1, .min_p = 0.9, .typical_p = 0.2, .seed = 3};
  EXPECT_EQ(first(p, {1, 3, 3, 2}), 1);
}

TEST(Sampler, NeverDrawsIdsThatTheTokenizerDoesNotKnow) {
  Sampler sampler({.logprobs = true, .top_logprobs = 3}, setup(2));
  SamplerScratch scratch;
  const Result<DrawnToken> drawn = sampler.sample(std::vector<float>{1, 2, 9}, scratch);
  ASSERT_TRUE(drawn.is_ok());
  EXPECT_EQ(drawn->token, 1);
  EXPECT_EQ(drawn->logprobs->top.size(), 2u);
}

TEST(Sampler, BrokenLogitsAreAnError) {
  Sampler sampler(SamplingParams{}, setup());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error(sampler, {1, nan}), StatusCode::kInternal);
  EXPECT_EQ(error(sampler, {-kInf, -kInf}), StatusCode::kInternal);
  EXPECT_EQ(error(sampler, {1, kInf}), StatusCode::kInternal);
  EXPECT_EQ(error(sampler, {}), StatusCode::kInternal);
  for (size_t at = 0; at < 40; ++at) {
    for (float bad : {nan, kInf}) {
      std::vector<float> logits(40, -1);
      logits[at] = bad;
      EXPECT_EQ(error(sampler, logits), StatusCode::kInternal) << at;
    }
  }
}

TEST(Sampler, FindsTheLargestWhereverItStands) {
  for (size_t n : {1, 15, 16, 17, 40}) {
    for (size_t at = 0; at < n; ++at) {
      std::vector<float> logits(n, -3);
      for (size_t i = at; i < n; ++i) logits[i] = 2;  // ties behind it
      EXPECT_EQ(first({}, logits), static_cast<int32_t>(at));
    }
  }
}

// --- the same answer ---

TEST(Sampler, AnInterruptedAnswerGoesOnAsItWouldHave) {
  SamplingParams p{.temperature = 1,
                   .top_p = 0.95,
                   .repetition_penalty = 1.3,
                   .frequency_penalty = 0.4,
                   .seed = 42};
  Sampler whole(p, setup());
  whole.observe_prompt(std::vector<int32_t>{1, 2, 3});
  const std::vector<int32_t> want = run(whole, 0, 40);
  for (int64_t cut : {0, 1, 17, 39}) {
    Sampler resumed(p, setup());
    resumed.observe_prompt(std::vector<int32_t>{1, 2, 3});
    for (int64_t i = 0; i < cut; ++i) {
      ASSERT_TRUE(resumed.accept(want[static_cast<size_t>(i)]).is_ok());
    }
    EXPECT_EQ(run(resumed, cut, 40), std::vector<int32_t>(want.begin() + cut, want.end())) << cut;
  }
}

TEST(Sampler, ASeedsAnswerDoesNotDependOnMates) {
  Sampler alone(seeded(42), setup());
  const std::vector<int32_t> want = run(alone, 0, 30);
  Sampler a(seeded(42), setup());
  Sampler unseeded({.temperature = 1}, {.seed = SeedSource().next(), .n_known = 50});
  Sampler other(seeded(43), setup());
  std::vector<int32_t> got;
  std::vector<int32_t> different;
  for (int64_t i = 0; i < 30; ++i) {
    run(unseeded, i, i + 1);
    got.push_back(run(a, i, i + 1)[0]);
    different.push_back(run(other, i, i + 1)[0]);
  }
  EXPECT_EQ(got, want);
  EXPECT_NE(different, want);
}

TEST(Sampler, SamplingAgainGivesTheSameToken) {
  Sampler sampler(seeded(5), setup());
  const std::vector<float> logits = ref::random_floats(100, 1);
  const int32_t token = next(sampler, logits);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(next(sampler, logits), token);
}

TEST(Sampler, EachAnswerOfARequestHasItsStream) {
  std::vector<std::vector<int32_t>> answers;
  for (uint32_t stream = 0; stream < 4; ++stream) {
    Sampler sampler(seeded(42), {.stream = stream, .n_known = 50});
    answers.push_back(run(sampler, 0, 20));
  }
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(answers[i], answers[j]);
  }
  Sampler again(seeded(42), {.stream = 2, .n_known = 50});
  EXPECT_EQ(run(again, 0, 20), answers[2]);
}

// --- distributions ---

/// 99.9 % point of the chi-square distribution (Wilson and Hilferty 1931).
double chi_square_limit(double degrees) {
  const double a = 2 / (9 * degrees);
  return degrees * std::pow(1 - a + 3.09 * std::sqrt(a), 3);
}

/// Draws first tokens behind `history` with seeds 0, 1, 2... and compares their counts with `want`.
void expect_distribution(SamplingParams p, const ref::History& history,
                         const std::vector<float>& logits, const std::vector<double>& want) {
  constexpr int kDraws = 8000;
  std::vector<int> counts(logits.size());
  for (int i = 0; i < kDraws; ++i) {
    p.seed = static_cast<uint64_t>(i);
    Sampler sampler(p, setup());
    sampler.observe_prompt(history.prompt);
    for (int32_t id : history.answer) ASSERT_TRUE(sampler.accept(id).is_ok());
    ++counts[static_cast<size_t>(next(sampler, logits))];
  }
  double chi_square = 0;
  double degrees = -1;
  for (size_t i = 0; i < want.size(); ++i) {
    if (want[i] == 0) {
      EXPECT_EQ(counts[i], 0) << i;
      continue;
    }
    const double expected = want[i] * kDraws;
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
    ++degrees;
  }
  if (degrees > 0) {
    EXPECT_LT(chi_square, chi_square_limit(degrees));
  }
}

// Probabilities by the logits processors of transformers 5.24, in the order of generate, for the
// logits below, prompt {1, 4, 1} and answer {4, 3}.
struct HuggingFaceCase {
  const char* name;
  SamplingParams params;
  std::vector<double> want;
};

const std::vector<float> kLogits = {2.0f, 1.5f, -0.5f, 0.75f, 3.0f, -2.0f, 0.25f, 1.0f};
const ref::History kHistory{{1, 4, 1}, {4, 3}};

const HuggingFaceCase kHuggingFaceCases[] = {
    {"temperature",
     {.temperature = 0.7},
     {0.161731, 0.079174, 0.004547, 0.027119, 0.674861, 0.000533, 0.013276, 0.038759}},
    {"top-k before top-p", {.temperature = 1, .top_k = 3, .top_p = 0.62}, {0, 0, 0, 0, 1, 0, 0, 0}},
    {"top-p alone", {.temperature = 1, .top_p = 0.62}, {0.268941, 0, 0, 0, 0.731059, 0, 0, 0}},
    {"repetition penalty",
     {.temperature = 1, .repetition_penalty = 1.8},
     {0.347792, 0.108304, 0.028549, 0.071398, 0.249204, 0.006370, 0.060437, 0.127946}},
    {"bias before repetition penalty",
     {.temperature = 1, .repetition_penalty = 1.8, .logit_bias = {{4, -4}, {0, 1}}},
     {0.697103, 0.079859, 0.021051, 0.052646, 0.005737, 0.004697, 0.044564, 0.094343}},
    {"temperature before top-p",
     {.temperature = 2, .top_p = 0.7},
     {0.247890, 0.193057, 0, 0, 0.408701, 0, 0, 0.150353}},
    {"temperature before min-p",
     {.temperature = 2, .min_p = 0.3},
     {0.218851, 0.170442, 0, 0.117143, 0.360825, 0, 0, 0.132740}},
    {"min-p before typical",
     {.temperature = 1, .min_p = 0.1, .typical_p = 0.5},
     {0.268941, 0, 0, 0, 0.731059, 0, 0, 0}},
    {"typical",
     {.temperature = 1, .typical_p = 0.4},
     {0.231224, 0.140244, 0, 0, 0.628532, 0, 0, 0}},
    {"all",
     {.temperature = 1.3,
      .top_k = 6,
      .top_p = 0.95,
      .min_p = 0.05,
      .typical_p = 0.9,
      .repetition_penalty = 1.2,
      .logit_bias = {{5, 4}}},
     {0.222517, 0.124971, 0, 0, 0.326888, 0.222517, 0, 0.103107}}};

TEST(Sampler, StepsComeInTheOrderOfHuggingFace) {
  for (const HuggingFaceCase& c : kHuggingFaceCases) {
    SCOPED_TRACE(c.name);
    expect_distribution(c.params, kHistory, kLogits, c.want);
  }
}

TEST(Sampler, FrequenciesFollowTheReference) {
  const std::vector<float> logits = ref::random_floats(60, 4, 2);
  const SamplingParams cases[] = {
      {.temperature = 1},
      {.temperature = 1.2, .presence_penalty = 1.5, .frequency_penalty = 0.7},
      {.temperature = 0.8, .repetition_penalty = 1.4, .presence_penalty = -1},
      {.temperature = 1.1, .top_k = 30, .top_p = 0.913, .min_p = 0.02, .typical_p = 0.83}};
  const ref::History history{{1, 2, 3, 50}, {50, 50, 7, 9}};
  for (const SamplingParams& p : cases) {
    expect_distribution(p, history, logits,
                        ref::distribution(ref::Scores(logits.begin(), logits.end()), p, history));
  }
}

TEST(Sampler, PenaltiesOfTheAnswerLeaveThePromptAlone) {
  Sampler sampler({.presence_penalty = 2, .frequency_penalty = 2}, setup());
  sampler.observe_prompt(std::vector<int32_t>{1});
  EXPECT_EQ(next(sampler, {0.5f, 1}), 1);
  ASSERT_TRUE(sampler.accept(1).is_ok());
  EXPECT_EQ(next(sampler, {0.5f, 1}), 0);
}

// --- where the answer ends ---

TEST(Sampler, MinTokensHoldsBackEndTokensAndStopIds) {
  Sampler sampler({.stop_token_ids = {2}, .min_tokens = 2}, {.eos_ids = {3}, .n_known = 4});
  const std::vector<float> logits = {0, 1, 2, 3};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(next(sampler, logits), 1);
    ASSERT_TRUE(sampler.accept(1).is_ok());
  }
  EXPECT_EQ(next(sampler, logits), 3);
  EXPECT_TRUE(sampler.ends(3));
  EXPECT_TRUE(sampler.ends(2));
  EXPECT_FALSE(sampler.ends(1));
}

TEST(Sampler, MinTokensGivesWayWhereNothingElseCanCome) {
  Sampler model({.min_tokens = 2}, {.eos_ids = {1}, .n_known = 2});
  EXPECT_EQ(next(model, {-kInf, 0}), 1);
  Sampler grammar({.min_tokens = 5}, scripted({{3}}));
  ASSERT_TRUE(grammar.accept(3).is_ok());
  EXPECT_EQ(next(grammar, std::vector<float>(12, 0)), 9);
}

TEST(Sampler, IgnoreEosKeepsStopIds) {
  Sampler sampler({.stop_token_ids = {2}, .min_tokens = 1, .ignore_eos = true},
                  {.eos_ids = {3}, .n_known = 4});
  EXPECT_FALSE(sampler.ends(3));
  EXPECT_TRUE(sampler.ends(2));
  EXPECT_EQ(next(sampler, {0, 1, 2, 3}), 3);
}

// --- grammar ---

TEST(Sampler, DrawsWhatTheGrammarAllowsBeforeTopK) {
  SamplingParams p = seeded(1);
  p.top_k = 1;
  Sampler sampler(p, scripted({{2, 5}, {4}}));
  std::vector<float> logits(12, 0);
  logits[7] = 5;
  logits[5] = 1;
  EXPECT_EQ(next(sampler, logits), 5);
  ASSERT_TRUE(sampler.accept(5).is_ok());
  EXPECT_EQ(next(sampler, logits), 4);
  ASSERT_TRUE(sampler.accept(4).is_ok());
  EXPECT_EQ(next(sampler, logits), 9);
  EXPECT_FALSE(sampler.finished());
}

TEST(Sampler, TheMaskIsWorkedOutOnceAStepAndMayComeEarly) {
  auto script = std::make_unique<Script>(std::vector<std::vector<int32_t>>{{2}, {3}});
  Script* raw = script.get();
  SamplerSetup with = setup();
  with.constraint = std::move(script);
  Sampler sampler(SamplingParams{}, std::move(with));
  sampler.prepare_mask();
  sampler.prepare_mask();
  EXPECT_EQ(next(sampler, std::vector<float>(12, 0)), 2);
  EXPECT_EQ(raw->n_masks, 1);
  ASSERT_TRUE(sampler.accept(2).is_ok());
  EXPECT_EQ(next(sampler, std::vector<float>(12, 0)), 3);
  EXPECT_EQ(raw->n_masks, 2);
}

TEST(Sampler, AGrammarThatCannotGoOnIsAnErrorOfTheRequest) {
  Sampler dead(SamplingParams{}, scripted({{}}));
  EXPECT_EQ(error(dead, std::vector<float>(12, 0)), StatusCode::kInvalidArgument);
  // Allowed, but beyond the ids the tokenizer knows.
  SamplerSetup beyond = scripted({{11}});
  beyond.n_known = 10;
  Sampler unknown(SamplingParams{}, std::move(beyond));
  SamplerScratch scratch;
  const auto drawn = unknown.sample(std::vector<float>(12, 0), scratch);
  EXPECT_EQ(drawn.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(drawn.status().message(), HasSubstr("grammar"));
}

// --- log-probabilities ---

TEST(Sampler, LogprobsAreThoseOfTheModelsOwnLogits) {
  SamplingParams p{.temperature = 0.5,
                   .top_k = 1,
                   .repetition_penalty = 9,
                   .logit_bias = {{3, 100}},
                   .logprobs = true,
                   .top_logprobs = 5};
  const std::vector<float> logits = ref::random_floats(300, 6, 8);
  Sampler sampler(p, setup());
  SamplerScratch scratch;
  const Result<DrawnToken> drawn = sampler.sample(logits, scratch);
  ASSERT_TRUE(drawn.is_ok());
  ASSERT_TRUE(drawn->logprobs.has_value());
  EXPECT_EQ(drawn->token, 3);
  const ref::Scores share = ref::softmax(ref::Scores(logits.begin(), logits.end()));
  EXPECT_NEAR(drawn->logprobs->logprob, std::log(share[3]), 1e-12);
  ASSERT_EQ(drawn->logprobs->top.size(), 5u);
  const std::vector<size_t> order = ref::sorted_by(ref::negative(share));
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(drawn->logprobs->top[i].token, static_cast<int32_t>(order[i]));
    EXPECT_NEAR(drawn->logprobs->top[i].logprob, std::log(share[order[i]]), 1e-12);
  }
}

TEST(Sampler, LogprobsOfHugeAndMissingLogitsAreFinite) {
  Sampler sampler({.logprobs = true, .top_logprobs = 20}, setup());
  SamplerScratch scratch;
  const auto drawn = sampler.sample(std::vector<float>{3e38f, -3e38f, -kInf, 3e38f}, scratch);
  ASSERT_TRUE(drawn.is_ok());
  EXPECT_NEAR(drawn->logprobs->logprob, std::log(0.5), 1e-12);
  ASSERT_EQ(drawn->logprobs->top.size(), 3u);  // not the one that cannot come
  EXPECT_EQ(drawn->logprobs->top[0].token, 0);
  EXPECT_EQ(drawn->logprobs->top[1].token, 3);
}

TEST(Sampler, LogprobsComeOnlyWhenAsked) {
  Sampler sampler(SamplingParams{}, setup());
  SamplerScratch scratch;
  EXPECT_FALSE(sampler.sample(std::vector<float>{1, 2}, scratch)->logprobs.has_value());
}

}  // namespace
}  // namespace triptych
