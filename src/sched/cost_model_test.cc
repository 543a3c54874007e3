#include "sched/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace triptych {
namespace {

// A machine that the starting model misjudges: factors from 0.3 to 3, text and media keys alike.
double real_ms(const StepShape& s) {
  return (s.rows > 0 ? 14.0 : 0) + std::max(0.0, s.rows * 0.1 - 10) + s.rows * 0.01 +
         s.prefill_pairs * 3e-6 + (s.decode_text_tokens + s.decode_media_tokens) * 2e-4 +
         s.encode_gflop * 0.05 + s.encode_blocks * 0.1;
}

StepShape random_shape(std::mt19937_64& random) {
  const auto uniform = [&](double high) {
    return std::uniform_real_distribution<double>(0, high)(random);
  };
  StepShape s;
  const auto n_decode = static_cast<int>(uniform(64));
  for (int i = 0; i < n_decode; ++i) s.add_decode(uniform(1000), uniform(1000));
  if (uniform(1) < 0.4) s.add_prefill(std::floor(uniform(512)), uniform(2000));
  if (uniform(1) < 0.3) s.add_encode(std::floor(uniform(24)), uniform(50));
  s.rows = std::max(s.rows, 1.0);
  return s;
}

TEST(CostModel, LearnsAMachineThatThePriorMisjudges) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(0, 0.03);
  CostModel model(CostPriors{.weights_ms = 10, .row_ms = 0.1});
  for (int i = 0; i < 1500; ++i) {
    const StepShape s = random_shape(random);
    model.observe(s, real_ms(s) * std::exp(noise(random)));
  }
  EXPECT_GT(model.p95_relative_error(), 0.03);
  EXPECT_LT(model.p95_relative_error(), 0.1);
  StepShape decode;
  for (int i = 0; i < 30; ++i) decode.add_decode(500, 100);
  EXPECT_NEAR(model.predict_ms(decode) / real_ms(decode), 1, 0.04);
}

TEST(CostModel, FindsOutWhetherFewRowsComeAlongForNothing) {
  // Mostly decode steps of one to four rows, a prefill chunk now and then, as an engine sees them.
  const auto every_row_counts = [](const StepShape& s) { return 0.24 + s.rows * 0.067; };
  const auto hidden_rows = [](const StepShape& s) {
    return std::max(0.616, s.rows * 0.12) + s.rows * 0.002;
  };
  for (const auto& real : {std::function<double(const StepShape&)>(every_row_counts),
                           std::function<double(const StepShape&)>(hidden_rows)}) {
    std::mt19937_64 random(4);
    std::normal_distribution<double> noise(0, 0.1);
    CostModel model(CostPriors{.weights_ms = 0.616, .row_ms = 0.12});
    for (int i = 0; i < 4000; ++i) {
      StepShape s;
      for (uint64_t n = 1 + random() % 4; n > 0; --n) s.add_decode(30, 0);
      if (random() % 8 == 0) s.add_prefill(static_cast<double>(16 + random() % 100), 200);
      model.observe(s, real(s) * std::exp(noise(random)));
    }
    for (const int rows : {1, 3, 40, 100}) {
      StepShape s;
      s.add_decode(30, 0);
      if (rows > 4) s.add_prefill(rows - 1, 200);
      for (int i = 1; i < rows && rows <= 4; ++i) s.add_decode(30, 0);
      EXPECT_NEAR(model.predict_ms(s) / real(s), 1, 0.15) << rows << " rows";
    }
  }
}

TEST(CostModel, OutliersDoNotMoveIt) {
  std::mt19937_64 random(2);
  CostModel model(CostPriors{.weights_ms = 10, .row_ms = 0.1});
  for (int i = 0; i < 2000; ++i) {
    const StepShape s = random_shape(random);
    model.observe(s, real_ms(s) * (i % 50 == 49 ? 10 : 1));
  }
  StepShape decode;
  for (int i = 0; i < 30; ++i) decode.add_decode(500, 100);
  EXPECT_NEAR(model.predict_ms(decode) / real_ms(decode), 1, 0.05);
}

TEST(CostModel, FollowsAMachineThatGetsSlower) {
  std::mt19937_64 random(3);
  CostModel model(CostPriors{.weights_ms = 10, .row_ms = 0.1});
  for (int i = 0; i < 3000; ++i) {
    const StepShape s = random_shape(random);
    model.observe(s, real_ms(s) * (i < 1500 ? 1 : 2));
  }
  StepShape decode;
  for (int i = 0; i < 30; ++i) decode.add_decode(500, 100);
  EXPECT_NEAR(model.predict_ms(decode) / (2 * real_ms(decode)), 1, 0.08);
}

TEST(CostModel, FactorsStayInTheirBoundsWhateverIsMeasured) {
  CostModel model(CostPriors{});
  StepShape s;
  s.add_decode(10, 10);
  for (const double ms : {0.0, -1.0, std::nan(""), double{INFINITY}, 1e-9, 1e12}) {
    for (int i = 0; i < 100; ++i) model.observe(s, ms);
  }
  for (const double factor : model.fit().factors()) {
    EXPECT_GE(factor, RecursiveFit::kLeast);
    EXPECT_LE(factor, RecursiveFit::kMost);
  }
}

TEST(CostModel, PrefillRowsWithinIsTheLargestChunkInTime) {
  const CostModel model(CostPriors{});
  StepShape shape;
  shape.add_decode(100, 0);
  for (double limit = 5; limit < 120; limit += 7) {
    const int64_t n = model.prefill_rows_within(shape, 300, 512, limit);
    const auto time = [&](int64_t rows) {
      StepShape grown = shape;
      grown.add_prefill(static_cast<double>(rows), 300);
      return model.predict_ms(grown);
    };
    EXPECT_TRUE(n == 0 || time(n) <= limit);
    EXPECT_TRUE(n == 512 || time(n + 1) > limit);
  }
}

}  // namespace
}  // namespace triptych
