#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "sched/model_engine.h"

namespace triptych {
namespace {

using Random = std::mt19937_64;

int64_t uniform(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

bool chance(Random& random, double p) {
  return std::uniform_real_distribution<double>(0, 1)(random) < p;
}

SchedulerConfig random_config(Random& random) {
  SchedulerConfig config;
  config.chunk_rows = uniform(random, 8, 300);
  config.max_running = uniform(random, 1, 24);
  config.step_rows = config.chunk_rows + config.max_running + uniform(random, 0, 200);
  config.min_chunk_rows = uniform(random, 1, 32);
  config.max_preemptions = static_cast<int32_t>(uniform(random, 0, 4));
  config.encode_slice_ms = static_cast<double>(uniform(random, 1, 12));
  config.drr_quantum = uniform(random, 1, 4000);
  config.ageing_ms = static_cast<double>(uniform(random, 50, 5000));
  config.forecast_sigmas = static_cast<double>(uniform(random, 0, 4));
  config.admission = static_cast<AdmissionRule>(uniform(random, 0, 2));
  if (chance(random, 0.5)) config.admission = AdmissionRule::kForecast;
  config.order = chance(random, 0.2) ? QueueOrder::kArrival : QueueOrder::kDeadline;
  config.headroom = chance(random, 0.5) ? 0.02 : 0;
  config.push_out = chance(random, 0.5);
  config.pause_below = 0.01 * static_cast<double>(uniform(random, 0, 10));
  config.slice_encoding = chance(random, 0.9);
  if (chance(random, 0.2)) config.classes[0].shed_factor = 1;
  return config;
}

ModelMachine random_machine(Random& random) {
  ModelMachine machine;
  machine.total_pages = uniform(random, 10, 200);
  machine.media_bytes_cap = static_cast<uint64_t>(uniform(random, 100, 4000));
  machine.evictable = chance(random, 0.5) ? 0.5 : 0;
  machine.lost_features = 0.5;
  machine.truth.weights_ms = static_cast<double>(uniform(random, 1, 30));
  machine.truth.row_ms = 0.01 * static_cast<double>(uniform(random, 1, 50));
  return machine;
}

TraceRequest random_request(Random& random, double now_ms) {
  TraceRequest r;
  r.arrival_ms = now_ms;
  r.service_class = static_cast<ServiceClass>(uniform(random, 0, 2));
  r.tenant = static_cast<uint32_t>(uniform(random, 0, 3));
  r.max_new = uniform(random, 1, 200);
  r.n_answer = uniform(random, 1, r.max_new);
  if (chance(random, 0.1)) r.expires_ms = now_ms + static_cast<double>(uniform(random, 1, 5000));
  r.n_prompt = uniform(random, 1, chance(random, 0.1) ? 3000 : 300);
  const int64_t n_media = chance(random, 0.4) ? uniform(random, 1, 4) : 0;
  int64_t at = uniform(random, 0, 20);
  for (int64_t i = 0; i < n_media; ++i) {
    MediaState media;
    media.position = at;
    media.length = uniform(random, 1, chance(random, 0.2) ? 400 : 60);
    // A few items are asked for again and again; the cost of an item follows from its number.
    media.item = static_cast<uint64_t>(chance(random, 0.3) ? uniform(random, 1, 5)
                                                           : uniform(random, 100, INT64_MAX));
    media.blocks_total = media.blocks_left = static_cast<int64_t>(media.item % 24 + 1);
    media.block_gflop = static_cast<double>(media.item % 199 + 1);
    media.bytes = static_cast<uint64_t>(uniform(random, 1, 300));
    at = media.end() + (chance(random, 0.5) ? 0 : uniform(random, 1, 40));
    r.media.push_back(media);
  }
  r.n_prompt += at;
  return r;
}

Snapshot shuffled(Snapshot snapshot, Random& random) {
  std::shuffle(snapshot.waiting.begin(), snapshot.waiting.end(), random);
  std::shuffle(snapshot.running.begin(), snapshot.running.end(), random);
  return snapshot;
}

// What happened over all loads: a rule that never came into play was not tested.
struct Seen {
  int64_t steps = 0;
  int64_t preempted = 0;
  int64_t paused = 0;
  int64_t pushed_out = 0;  // of these, for a higher class
  int64_t promised = 0;    // preempted as often as may be, and finished
  int64_t encoded_beside_decode = 0;
  int64_t over_budget = 0;
  std::array<int64_t, 4> ended{};
};

void count(const StepPlan& plan, Seen& seen) {
  ++seen.steps;
  seen.preempted += static_cast<int64_t>(plan.preempt.size());
  seen.paused += static_cast<int64_t>(plan.paused.size());
  seen.pushed_out += static_cast<int64_t>(plan.n_pushed_out);
  if (plan.n_decode_rows > 0 && !plan.encode.empty()) ++seen.encoded_beside_decode;
  if (plan.predicted_ms > plan.budget_ms) ++seen.over_budget;
  for (const EndedSequence& ended : plan.ended) ++seen.ended[static_cast<size_t>(ended.reason)];
}

// Plays one random load to its end.
void play(uint64_t seed, Seen& seen) {
  Random random(seed);
  const SchedulerConfig config = random_config(random);
  EXPECT_TRUE(validate(config).is_ok()) << validate(config).message();
  const ModelMachine machine = random_machine(random);
  ModelEngine engine(machine, config, CostPriors{}, seed);
  const int64_t n_requests = uniform(random, 5, 80);
  const double arrivals = chance(random, 0.5) ? 0.9 : 0.1;  // a step
  int64_t submitted = 0;
  int64_t steps = 0;
  int64_t idle_steps = 0;
  while (submitted < n_requests || !engine.idle()) {
    while (submitted < n_requests && (engine.idle() || chance(random, arrivals))) {
      engine.submit(random_request(random, engine.snapshot().now_ms));
      ++submitted;
    }
    if (chance(random, 0.01)) {
      engine.cancel(static_cast<uint64_t>(uniform(random, 1, submitted)));
      if (engine.idle()) continue;
    }
    if (steps % 16 == 0) {
      const Snapshot other = shuffled(engine.snapshot(), random);
      const StepPlan a = plan_step(engine.snapshot(), config, engine.predictors());
      EXPECT_EQ(a, plan_step(engine.snapshot(), config, engine.predictors())) << "seed " << seed;
      EXPECT_EQ(a, plan_step(other, config, engine.predictors())) << "order matters, seed " << seed;
    }
    const Result<StepReport> report = engine.step();
    EXPECT_TRUE(report.is_ok()) << "seed " << seed << ": " << report.status().message();
    if (!report.is_ok() || ::testing::Test::HasFailure()) return;
    ++steps;
    count(report->plan, seen);
    idle_steps = report->plan.does_nothing() && !engine.idle() ? idle_steps + 1 : 0;
    EXPECT_LT(idle_steps, 2) << "nothing goes on, seed " << seed;
    EXPECT_LT(steps, 200000) << "starved, seed " << seed;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(engine.results().size(), static_cast<size_t>(n_requests));
  EXPECT_EQ(engine.snapshot().available_pages(), machine.total_pages) << "pages leaked";
  EXPECT_EQ(engine.snapshot().media_bytes_in_use, 0u) << "media memory leaked";
  for (const RequestResult& result : engine.results()) {
    EXPECT_LE(result.n_preempted, config.max_preemptions) << "seed " << seed;
    if (result.n_preempted > 0 && result.n_preempted == config.max_preemptions) ++seen.promised;
  }
}

TEST(PlanProperties, HoldOverAHundredThousandRandomSteps) {
  Seen seen;
  for (uint64_t seed = 1; seen.steps < 200000 && !HasFailure(); ++seed) play(seed, seen);
  EXPECT_GT(seen.paused, 1000);
  EXPECT_GT(seen.preempted, 200);
  EXPECT_GT(seen.pushed_out, 50);
  EXPECT_GT(seen.promised, 50);
  EXPECT_GT(seen.encoded_beside_decode, 1000);
  EXPECT_GT(seen.over_budget, 50);
  for (const int64_t ended : seen.ended) EXPECT_GT(ended, 20);
}

}  // namespace
}  // namespace triptych
