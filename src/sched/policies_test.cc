#include <gtest/gtest.h>

#include <map>
#include <random>

#include "sched/answer_lengths.h"
#include "sched/byte_factor.h"
#include "sched/deadline.h"
#include "sched/fairness.h"

namespace triptych {
namespace {

SequenceState arrived(uint64_t id, ServiceClass service_class, double ms) {
  SequenceState s;
  s.id = id;
  s.service_class = service_class;
  s.arrival_ms = ms;
  return s;
}

TEST(Deadline, ClassThenDeadlineThenId) {
  const SchedulerConfig config;
  const auto at = [&](const SequenceState& s) { return urgency(s, 1000, config); };
  EXPECT_LT(at(arrived(9, ServiceClass::kInteractive, 900)),
            at(arrived(1, ServiceClass::kStandard, 100)));
  EXPECT_LT(at(arrived(9, ServiceClass::kStandard, 100)),
            at(arrived(1, ServiceClass::kStandard, 200)));
  EXPECT_LT(at(arrived(1, ServiceClass::kBatch, 100)), at(arrived(2, ServiceClass::kBatch, 100)));
}

TEST(Deadline, WaitingLiftsARequestOverNewOnesOfAHigherClass) {
  SchedulerConfig config;
  config.ageing_ms = 1000;
  config.classes[2].ttft_ms = 5000;
  const SequenceState batch = arrived(1, ServiceClass::kBatch, 0);
  EXPECT_EQ(urgency(batch, 999, config).rank, 2);
  EXPECT_EQ(urgency(batch, 1000, config).rank, 1);
  EXPECT_EQ(urgency(batch, 5000, config).rank, 0);
  EXPECT_LT(urgency(batch, 8000, config),
            urgency(arrived(2, ServiceClass::kInteractive, 7000), 8000, config));
}

TEST(Deadline, TheNextTokenIsDueATargetAfterTheLastOneWasDue) {
  const SchedulerConfig config;  // interactive: 50 ms
  SequenceState s = arrived(1, ServiceClass::kInteractive, 0);
  s.n_prompt = 10;
  s.n_tokens = 11;
  s.first_token_ms = 100;
  const SequenceState* one[] = {&s};
  EXPECT_DOUBLE_EQ(time_to_next_token(one, 100, config), 50);
  s.n_tokens = 15;  // four more tokens in 150 ms: 50 ms early
  EXPECT_DOUBLE_EQ(time_to_next_token(one, 250, config), 100);
  EXPECT_DOUBLE_EQ(time_to_next_token(one, 120, config), 100) << "never more than two targets";
  EXPECT_DOUBLE_EQ(time_to_next_token(one, 900, config), 25) << "never less than half of one";
  EXPECT_EQ(time_to_next_token({}, 900, config), kNever);
}

TEST(Fairness, TokensAreSharedEvenlyWhateverTheSizeOfRequests) {
  DeficitRoundRobin tenants({}, 500);
  std::map<uint32_t, int64_t> served;
  const DeficitRoundRobin::Head heads[] = {{7, 10}, {2, 3000}, {5, 400}};
  for (int i = 0; i < 20000; ++i) {
    const uint32_t tenant = tenants.next(heads);
    for (const auto& head : heads) {
      if (head.tenant != tenant) continue;
      tenants.charge(tenant, head.tokens);
      served[tenant] += head.tokens;
    }
  }
  EXPECT_NEAR(static_cast<double>(served[7]) / static_cast<double>(served[2]), 1, 0.05);
  EXPECT_NEAR(static_cast<double>(served[5]) / static_cast<double>(served[2]), 1, 0.05);
}

TEST(Fairness, ATenantThatLeavesTakesNothingAlong) {
  DeficitRoundRobin tenants({{{1, 900}, {2, 50}}, 1}, 100);
  const uint32_t here[] = {2};
  tenants.keep(here);
  EXPECT_EQ(tenants.state().deficits, (std::vector<TenantDeficit>{{2, 50}}));
}

TEST(AnswerLengths, ExpectsTheLimitBeforeAnythingIsKnown) {
  const AnswerLengths lengths;
  EXPECT_DOUBLE_EQ(lengths.survival(ServiceClass::kBatch, 0, 500), 1);
  EXPECT_DOUBLE_EQ(lengths.mean(ServiceClass::kBatch, 300), 300);
}

TEST(AnswerLengths, LearnsADistributionFromCutAnswersToo) {
  AnswerLengths lengths;
  std::mt19937_64 random(1);
  std::exponential_distribution<double> length(1.0 / 100);
  for (int i = 0; i < 5000; ++i) {
    const auto n = static_cast<int64_t>(length(random)) + 1;
    const int64_t limit = i % 2 == 0 ? 60 : 2000;
    lengths.observe(ServiceClass::kStandard, std::min(n, limit), n < limit);
  }
  EXPECT_NEAR(lengths.survival(ServiceClass::kStandard, 0, 100), std::exp(-1), 0.08);
  EXPECT_NEAR(lengths.survival(ServiceClass::kStandard, 100, 100), std::exp(-1), 0.08);
  EXPECT_NEAR(lengths.mean(ServiceClass::kStandard, 4000), 110, 15)
      << "a little high, as the tail is little known";
  EXPECT_DOUBLE_EQ(lengths.survival(ServiceClass::kBatch, 0, 100), 1)
      << "other classes do not learn";
}

TEST(ByteFactor, StartsByPrecisionAndFollowsWhatWasMeasured) {
  EXPECT_DOUBLE_EQ(ByteFactor(Precision::kF32).value(), 1.8);
  EXPECT_DOUBLE_EQ(ByteFactor(Precision::kF16).value(), 1.3);
  EXPECT_DOUBLE_EQ(ByteFactor(Precision::kInt8).value(), 1.0);
  ByteFactor factor(Precision::kF32);
  EXPECT_EQ(factor.reserve(1000), 1800u);
  for (int i = 0; i < 200; ++i) factor.observe(1000, 1200);
  EXPECT_NEAR(factor.value(), 1.2, 0.01);
  factor.observe(1000, 2000);
  EXPECT_GT(factor.value(), 1.4) << "too little is learnt fast";
  factor.observe(0, 5);
  factor.observe(5, 0);
  for (int i = 0; i < 200; ++i) factor.observe(1000, 1);
  EXPECT_NEAR(factor.value(), 1.0, 0.01) << "never below what the tensors take";
}

}  // namespace
}  // namespace triptych
