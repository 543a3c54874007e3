#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace triptych {
namespace {

SamplingParams sampled(uint64_t seed) {
  SamplingParams p;
  p.temperature = 1;
  p.seed = seed;
  return p;
}

int32_t draw(const SamplingParams& params, const std::vector<float>& logits) {
  Sampler sampler(params);
  const Result<int32_t> token = sampler.sample(logits, static_cast<int64_t>(logits.size()));
  EXPECT_TRUE(token.is_ok());
  return token.is_ok() ? *token : -1;
}

TEST(Sampler, GreedyTakesTheFirstOfTheLargestWhateverElseIsSet) {
  SamplingParams p;
  p.top_k = 5;
  p.top_p = 0.1;
  p.min_p = 0.9;
  EXPECT_EQ(draw(p, {1, 3, 3, 2}), 1);
}

TEST(Sampler, NeverDrawsIdsThatTheTokenizerDoesNotKnow) {
  Sampler sampler{SamplingParams{}};
  const Result<int32_t> token = sampler.sample(std::vector<float>{1, 2, 9}, 2);
  ASSERT_TRUE(token.is_ok());
  EXPECT_EQ(*token, 1);
}

TEST(Sampler, SameSeedSameTokens) {
  const std::vector<float> logits = {0.1f, 0.5f, 0.2f, 0.9f, 0.3f};
  Sampler a(sampled(7));
  Sampler b(sampled(7));
  Sampler c(sampled(8));
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const int32_t token = *a.sample(logits, 5);
    EXPECT_EQ(token, *b.sample(logits, 5));
    differs = differs || token != *c.sample(logits, 5);
  }
  EXPECT_TRUE(differs);
}

TEST(Sampler, FrequenciesFollowTheSoftmax) {
  const std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f)};
  Sampler sampler(sampled(1));
  std::map<int32_t, int> counts;
  constexpr int kDraws = 40000;
  for (int i = 0; i < kDraws; ++i) ++counts[*sampler.sample(logits, 3)];
  EXPECT_NEAR(counts[0], kDraws / 8.0, 4 * std::sqrt(kDraws / 8.0));
  EXPECT_NEAR(counts[1], kDraws / 4.0, 4 * std::sqrt(kDraws / 4.0));
}

TEST(Sampler, TemperatureSharpensAndFlattens) {
  const std::vector<float> logits = {0, 1};
  SamplingParams cold = sampled(3);
  cold.temperature = 0.05;
  Sampler sharp(cold);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(*sharp.sample(logits, 2), 1);
}

TEST(Sampler, TopKKeepsTheLargest) {
  SamplingParams p = sampled(5);
  p.top_k = 2;
  Sampler sampler(p);
  for (int i = 0; i < 500; ++i) {
    const int32_t token = *sampler.sample(std::vector<float>{1, 2, 3, 0}, 4);
    EXPECT_TRUE(token == 1 || token == 2) << token;
  }
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesTheShare) {
  SamplingParams p = sampled(5);
  p.top_p = 0.6;  // shares 0.5, 0.3, 0.2: the first two reach it
  Sampler sampler(p);
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  std::map<int32_t, int> counts;
  for (int i = 0; i < 2000; ++i) ++counts[*sampler.sample(logits, 3)];
  EXPECT_EQ(counts.count(2), 0u);
  EXPECT_GT(counts[1], 0);
}

TEST(Sampler, MinPDropsWhatIsFarBelowTheMostLikely) {
  SamplingParams p = sampled(5);
  p.min_p = 0.5;
  Sampler sampler(p);
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  std::map<int32_t, int> counts;
  for (int i = 0; i < 2000; ++i) ++counts[*sampler.sample(logits, 3)];
  EXPECT_EQ(counts.count(2), 0u);
  EXPECT_GT(counts[1], 0);
}

TEST(Sampler, RepetitionPenaltyLowersSeenTokensOfEitherSign) {
  SamplingParams p;
  p.repetition_penalty = 2;
  Sampler sampler(p);
  sampler.observe(std::vector<int32_t>{1});
  EXPECT_EQ(*sampler.sample(std::vector<float>{0.6f, 1.0f}, 2), 0);    // 1.0 / 2 < 0.6
  EXPECT_EQ(*sampler.sample(std::vector<float>{-1.5f, -1.0f}, 2), 0);  // -1.0 * 2 < -1.5
}

TEST(Sampler, BrokenLogitsAreAnError) {
  Sampler sampler{SamplingParams{}};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sampler.sample(std::vector<float>{1, nan}, 2).status().code(), StatusCode::kInternal);
  EXPECT_EQ(sampler.sample(std::vector<float>{-inf, -inf}, 2).status().code(),
            StatusCode::kInternal);
  EXPECT_EQ(sampler.sample(std::vector<float>{1, inf}, 2).status().code(), StatusCode::kInternal);
}

TEST(Sampler, MinusInfinityIsNeverDrawn) {
  Sampler sampler(sampled(2));
  const float inf = std::numeric_limits<float>::infinity();
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(*sampler.sample(std::vector<float>{-inf, 0, -inf}, 3), 1);
  }
}

}  // namespace
}  // namespace triptych
