#include "engine/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ref/random_data.h"
#include "ref/sampling_ref.h"

namespace triptych {
namespace {

/// Probabilities [n] of what is left to draw from.
std::vector<double> distribution(const SamplerScratch& scratch, size_t n) {
  std::vector<double> out(n);
  double total = 0;
  for (const Candidate& c : scratch.candidates) total += c.weight;
  for (const Candidate& c : scratch.candidates) out[static_cast<size_t>(c.id)] = c.weight / total;
  return out;
}

std::vector<double> ours(const std::vector<float>& logits, const SamplingParams& p) {
  SamplerScratch scratch;
  const float best = *std::max_element(logits.begin(), logits.end());
  make_candidates(logits, best, p.temperature, p.top_k, scratch);
  if (p.top_p < 1) keep_top_p(p.top_p, scratch);
  if (p.min_p > 0) keep_min_p(p.min_p, scratch);
  if (p.typical_p < 1) keep_typical(p.typical_p, scratch);
  EXPECT_TRUE(std::is_sorted(scratch.candidates.begin(), scratch.candidates.end(),
                             [](const Candidate& a, const Candidate& b) { return a.id < b.id; }));
  return distribution(scratch, logits.size());
}

void expect_reference(const std::vector<float>& logits, const SamplingParams& p) {
  const std::vector<double> got = ours(logits, p);
  const ref::Scores want =
      ref::distribution(ref::Scores(logits.begin(), logits.end()), p, ref::History{});
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i] > 0, want[i] > 0) << i << ": " << got[i] << ", " << want[i];
    EXPECT_NEAR(got[i], want[i], 1e-12 + 1e-9 * want[i]) << i;
  }
}

class EachStep : public testing::TestWithParam<SamplingParams> {};

TEST_P(EachStep, AgreesWithTheReference) {
  for (uint32_t round = 0; round < 60; ++round) {
    std::mt19937 random(round);
    const int64_t n = 1 + static_cast<int64_t>(random() % (round % 10 == 0 ? 5000 : 300));
    std::vector<float> logits = ref::random_floats(n, round, round % 3 == 0 ? 0.1f : 3.0f);
    if (round % 4 == 1) {  // many equal ones
      for (float& l : logits) l = std::round(l * 2) / 2;
    }
    if (round % 5 == 2) logits[static_cast<size_t>(n) / 2] = -INFINITY;
    if (n == 1) logits[0] = 1;
    SCOPED_TRACE(testing::Message() << "round " << round << ", n " << n);
    expect_reference(logits, GetParam());
    if (testing::Test::HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Steps, EachStep,
    testing::Values(
        SamplingParams{.temperature = 1}, SamplingParams{.temperature = 0.31},
        SamplingParams{.temperature = 7}, SamplingParams{.temperature = 1, .top_k = 1},
        SamplingParams{.temperature = 1, .top_k = 40},
        SamplingParams{.temperature = 1, .top_k = 1500},
        SamplingParams{.temperature = 1, .top_p = 0.013},
        SamplingParams{.temperature = 1, .top_p = 0.517},
        SamplingParams{.temperature = 1, .top_p = 0.9973},
        SamplingParams{.temperature = 1, .min_p = 0.0731},
        SamplingParams{.temperature = 1, .min_p = 1},
        SamplingParams{.temperature = 1, .typical_p = 0.117},
        SamplingParams{.temperature = 1, .typical_p = 0.9131},
        SamplingParams{
            .temperature = 1.3, .top_k = 60, .top_p = 0.9431, .min_p = 0.011, .typical_p = 0.871}));

TEST(Candidates, ATinyTemperatureIsGreedyAndNotNotANumber) {
  for (double t : {1e-320, 1e-12}) {
    const std::vector<double> got = ours({1, 3, 2.999f, -INFINITY}, {.temperature = t});
    EXPECT_EQ(got, (std::vector<double>{0, 1, 0, 0})) << t;
  }
}

TEST(Candidates, EqualOnesAreCutFromTheHighestId) {
  const std::vector<float> equal(2000, 0.5f);
  for (int64_t k : {3, 1500}) {
    const std::vector<double> got = ours(equal, {.temperature = 1, .top_k = k});
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i] > 0, i < static_cast<size_t>(k)) << i;
  }
  const std::vector<double> half = ours(equal, {.temperature = 1, .top_p = 0.4999});
  for (size_t i = 0; i < half.size(); ++i) EXPECT_EQ(half[i] > 0, i < 1000) << i;
}

TEST(LargestLogits, AreTheFirstOfAFullSort) {
  const std::vector<float> logits = ref::random_floats(4000, 9);
  for (size_t k : {size_t{0}, size_t{1}, size_t{20}, size_t{1024}, size_t{1025}, size_t{9000}}) {
    std::vector<RankedLogit> got;
    largest_logits(logits, k, got);
    ASSERT_EQ(got.size(), std::min(k, logits.size()));
    sort_by_rank(got);
    const std::vector<size_t> order =
        ref::sorted_by(ref::negative(ref::Scores(logits.begin(), logits.end())));
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].id, static_cast<int32_t>(order[i]));
  }
}

TEST(DrawCandidate, LaysTheMassOutInTheOrderOfIds) {
  const std::vector<Candidate> c = {{0, 0.5, 3}, {0, 0, 5}, {0, 0.25, 7}, {0, 0.25, 9}, {0, 0, 11}};
  EXPECT_EQ(draw_candidate(0, c), 3);
  EXPECT_EQ(draw_candidate(0.4999, c), 3);
  EXPECT_EQ(draw_candidate(0.5, c), 7);
  EXPECT_EQ(draw_candidate(0.75, c), 9);
  EXPECT_EQ(draw_candidate(1 - 0x1p-53, c), 9);
}

}  // namespace
}  // namespace triptych
