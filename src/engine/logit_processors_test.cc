#include "engine/logit_processors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "ref/random_data.h"
#include "ref/sampling_ref.h"

namespace triptych {
namespace {

TokenCounts counts_of(const ref::History& history) {
  TokenCounts out;
  out.add_prompt(history.prompt);
  for (int32_t id : history.answer) out.add_answer(id);
  return out;
}

TEST(LogitProcessors, AgreeWithTheReference) {
  std::mt19937 random(1);
  for (uint32_t round = 0; round < 200; ++round) {
    const int32_t n = 1 + static_cast<int32_t>(random() % 500);
    std::vector<float> logits = ref::random_floats(n, round, 4);
    const auto any = [&] { return static_cast<int32_t>(random() % static_cast<uint32_t>(n)); };
    ref::History history;
    for (int i = 0; i < 20; ++i) history.prompt.push_back(any());
    for (int i = 0; i < 20; ++i) history.answer.push_back(any());
    SamplingParams p;
    p.repetition_penalty = 0.5 + 0.01 * (random() % 150);
    p.frequency_penalty = -2 + 0.01 * (random() % 400);
    p.presence_penalty = -2 + 0.01 * (random() % 400);
    p.logit_bias = {{any(), 12.5}};
    ref::Scores want(logits.begin(), logits.end());
    ref::penalise(want, p, history);
    add_bias(logits, p.logit_bias);
    penalise_repetition(logits, counts_of(history), p.repetition_penalty);
    penalise_answer(logits, counts_of(history), p.frequency_penalty, p.presence_penalty);
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_NEAR(logits[i], want[i], 1e-5 * (1 + std::abs(want[i]))) << round << " " << i;
    }
  }
}

TEST(LogitProcessors, IdsOutsideTheLogitsAreIgnored) {
  std::vector<float> logits = {1, 2};
  add_bias(logits, std::vector<std::pair<int32_t, double>>{{-1, 5}, {2, 5}});
  TokenCounts counts;
  counts.add_prompt(std::vector<int32_t>{-1, 2, 1 << 30});
  counts.add_answer(77);
  penalise_repetition(logits, counts, 2);
  penalise_answer(logits, counts, 1, 1);
  forbid(logits, std::vector<int32_t>{-1, 2});
  EXPECT_EQ(logits, (std::vector<float>{1, 2}));
}

TEST(LogitProcessors, NoPenaltyMakesAnInfinityOrLiftsMinusInfinity) {
  TokenCounts counts;
  counts.add_prompt(std::vector<int32_t>{0, 1, 2, 3});
  for (double penalty : {1e-300, 1e300}) {
    std::vector<float> logits = {5, -5, 0, -INFINITY};
    penalise_repetition(logits, counts, penalty);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isfinite(logits[static_cast<size_t>(i)])) << i;
    EXPECT_EQ(logits[3], -INFINITY);
  }
  std::vector<float> masked = {-INFINITY};
  add_bias(masked, std::vector<std::pair<int32_t, double>>{{0, 100}});
  EXPECT_EQ(masked[0], -INFINITY);
}

TEST(LogitProcessors, AMaskKeepsItsBitsAndNothingBeyond) {
  std::vector<float> logits(100, 1);
  std::vector<uint32_t> mask = {~uint32_t{0}, 0, 1u << 31};
  keep_allowed(logits, mask);
  for (size_t i = 0; i < logits.size(); ++i) {
    EXPECT_EQ(logits[i], i < 32 || i == 95 ? 1 : -INFINITY) << i;
  }
  std::vector<float> short_logits(10, 1);
  keep_allowed(short_logits, std::vector<uint32_t>{0b1000000001, 7});
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(short_logits[i], i == 0 || i == 9 ? 1 : -INFINITY);
}

}  // namespace
}  // namespace triptych
