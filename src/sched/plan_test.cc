#include "sched/plan.h"

#include <gtest/gtest.h>

#include "sched/feasibility.h"

namespace triptych {
namespace {

SequenceState waiting(uint64_t id, int64_t n_prompt, int64_t max_new) {
  SequenceState s;
  s.id = id;
  s.n_tokens = s.n_prompt = n_prompt;
  s.max_new = max_new;
  return s;
}

// `n_drawn` tokens drawn, the last one not cached.
SequenceState decoding(uint64_t id, int64_t n_prompt, int64_t n_drawn, int64_t max_new) {
  SequenceState s = waiting(id, n_prompt, max_new);
  s.n_tokens += n_drawn;
  s.n_cached = s.n_tokens - 1;
  s.n_pages_held = s.n_pages_own = (s.n_cached + 15) / 16;
  s.first_token_ms = s.last_token_ms = 0;
  return s;
}

MediaState picture(int64_t position, int64_t length, int64_t blocks, double block_gflop) {
  return {.position = position,
          .length = length,
          .item = 1,
          .blocks_left = blocks,
          .blocks_total = blocks,
          .block_gflop = block_gflop,
          .bytes = 1000};
}

Snapshot pool(int64_t pages) {
  Snapshot snapshot;
  snapshot.total_pages = snapshot.free_pages = pages;
  snapshot.media_bytes_cap = 10000;
  return snapshot;
}

void run(Snapshot& snapshot, const SequenceState& s) {
  snapshot.running.push_back(s);
  snapshot.free_pages -= s.n_pages_held;
}

const Predictors kPredictors{CostPriors{}};

TEST(Plan, ANewRequestComesInAndIsPrefilledInTheSameStep) {
  Snapshot snapshot = pool(100);
  snapshot.waiting = {waiting(1, 100, 50)};
  const StepPlan plan = plan_step(snapshot, SchedulerConfig{}, kPredictors);
  EXPECT_EQ(plan.admit, std::vector<uint64_t>{1});
  EXPECT_EQ(plan.rows, (std::vector<RowSlice>{{1, 100, 7}}));
  EXPECT_EQ(plan.budget_ms, kNever);
  EXPECT_GT(plan.predicted_ms, 0);
}

TEST(Plan, PrefillBesideDecodeIsCutToTheTimeOfTheNextToken) {
  Snapshot snapshot = pool(1000);
  run(snapshot, decoding(1, 30, 1, 50));
  snapshot.running[0].service_class = ServiceClass::kInteractive;
  snapshot.waiting = {waiting(2, 2000, 50)};
  const StepPlan plan = plan_step(snapshot, SchedulerConfig{}, kPredictors);
  ASSERT_EQ(plan.rows.size(), 2u);
  EXPECT_EQ(plan.rows[0].id, 1u);
  EXPECT_GT(plan.rows[1].n_rows, 50);
  EXPECT_LE(plan.predicted_ms, 45);
}

TEST(Plan, EncodingKeepsToItsSlice) {
  SchedulerConfig config;
  config.encode_slice_ms = 8;
  Snapshot snapshot = pool(1000);
  SequenceState s = waiting(2, 200, 50);
  s.media = {picture(10, 100, 24, 100)};  // 2.05 ms a block
  snapshot.waiting = {s};
  StepPlan alone = plan_step(snapshot, config, kPredictors);
  EXPECT_EQ(alone.encode, (std::vector<EncodeSlice>{{2, 0, 3}}));
  EXPECT_TRUE(alone.rows.empty()) << "the text in front of the picture waits for the slice's end";
  config.media_share = 1;  // nothing is paced
  config.encode_slice_ms = 100;
  alone = plan_step(snapshot, config, kPredictors);
  EXPECT_EQ(alone.encode, (std::vector<EncodeSlice>{{2, 0, 24}}));
  EXPECT_EQ(alone.rows, (std::vector<RowSlice>{{2, 200, 14}})) << "encoded before the forward";
  config.encode_slice_ms = 8;

  run(snapshot, decoding(1, 30, 1, 50));
  EXPECT_EQ(plan_step(snapshot, config, kPredictors).encode, (std::vector<EncodeSlice>{{2, 0, 3}}));
  config.encode_slice_ms = 0.5;
  EXPECT_EQ(plan_step(snapshot, config, kPredictors).encode, (std::vector<EncodeSlice>{{2, 0, 1}}))
      << "one block, or it would never end";
  config.slice_encoding = false;
  EXPECT_EQ(plan_step(snapshot, config, kPredictors).encode,
            (std::vector<EncodeSlice>{{2, 0, 24}}));
}

TEST(Plan, MediaEarnTheirTimeBesideDecodeUntilTheirDeadlineIsNear) {
  SchedulerConfig config;
  config.media_share = 0.2;
  config.encode_slice_ms = 8;
  Snapshot snapshot = pool(1000);
  SequenceState s = waiting(2, 200, 50);
  s.media = {picture(10, 100, 90, 100)};  // 2.05 ms a block, 185 ms in all
  s.n_cached = 10;
  s.n_pages_held = s.n_pages_own = 1;
  run(snapshot, s);
  run(snapshot, decoding(1, 30, 1, 50));
  double decode_ms = 0;
  double encode_ms = 0;
  for (int i = 0; i < 50; ++i) {
    const StepPlan plan = plan_step(snapshot, config, kPredictors);
    decode_ms += kPredictors.cost.predict_ms(plan.rows_shape);
    encode_ms += plan.predicted_encode_ms;
    if (decode_ms < 32) {
      EXPECT_EQ(encode_ms, 0) << "a slice is earned before it runs";
    }
    snapshot.fairness = plan.fairness;
    snapshot.running[0].media[0].blocks_left -= plan.encode.empty() ? 0 : plan.encode[0].n_blocks;
  }
  EXPECT_NEAR(encode_ms / (encode_ms + decode_ms), 0.2, 0.04);

  snapshot.running[0].media[0].blocks_left = 24;
  snapshot.fairness.media_credit_ms = -100;
  snapshot.now_ms = 3500;  // due at 4000, some 70 ms of work: a share of 2 * 0.14 would be safe
  const StepPlan due = plan_step(snapshot, config, kPredictors);
  const double earned = due.fairness.media_credit_ms + 100;
  const double decode = kPredictors.cost.predict_ms(due.rows_shape);
  EXPECT_GT(earned / (earned + decode), 0.25) << "the share grows";
  EXPECT_LT(earned / (earned + decode), 0.5);
  EXPECT_TRUE(plan_step(snapshot, config, kPredictors).encode.empty());
  snapshot.now_ms = 3850;  // due at 4000
  snapshot.running[1].first_token_ms = 3850;
  EXPECT_EQ(plan_step(snapshot, config, kPredictors).encode, (std::vector<EncodeSlice>{{2, 0, 3}}));
}

TEST(Plan, TheDecoderTakesOverAtOnceWhatIsEncoded) {
  SchedulerConfig config;
  Snapshot snapshot = pool(1000);
  SequenceState ready = waiting(2, 200, 50);
  ready.media = {picture(10, 100, 24, 100)};
  ready.media[0].encoded = true;
  run(snapshot, ready);
  SequenceState next = waiting(3, 200, 50);
  next.media = {picture(10, 100, 24, 101)};
  run(snapshot, next);
  run(snapshot, decoding(1, 30, 1, 50));
  snapshot.fairness.media_credit_ms = -100;
  StepPlan plan = plan_step(snapshot, config, kPredictors);
  EXPECT_TRUE(plan.encode.empty());
  ASSERT_EQ(plan.rows.size(), 2u);
  EXPECT_EQ(plan.rows[1].id, 2u);
  snapshot.running[0].n_cached = 50;  // it has begun: the rest is earned
  snapshot.running[0].n_pages_held = snapshot.running[0].n_pages_own = 4;
  plan = plan_step(snapshot, config, kPredictors);
  EXPECT_TRUE(plan.encode.empty());
  EXPECT_EQ(plan.rows.size(), 1u);
}

TEST(Plan, TextDoesNotWaitForThePictureThatCameBefore) {
  Snapshot snapshot = pool(1000);
  SequenceState picture_first = waiting(1, 200, 50);
  picture_first.media = {picture(10, 100, 24, 100)};
  picture_first.media[0].encoded = true;
  run(snapshot, picture_first);
  SequenceState text = waiting(2, 40, 50);
  text.arrival_ms = 1;
  snapshot.waiting = {text};
  const SchedulerConfig config;
  StepPlan plan = plan_step(snapshot, config, kPredictors);
  ASSERT_EQ(plan.rows.size(), 2u) << "the decoder begins with what is encoded";
  EXPECT_EQ(plan.rows[0].id, 2u);
  EXPECT_EQ(plan.rows[0].n_rows, 40);
  StepShape text_alone;
  text_alone.add_prefill(40, 0);
  EXPECT_LE(plan.predicted_ms,
            kPredictors.cost.predict_ms(text_alone) + config.encode_slice_ms + 0.1);

  snapshot.running[0].n_cached = 50;  // it has begun: text goes alone
  plan = plan_step(snapshot, config, kPredictors);
  ASSERT_EQ(plan.rows.size(), 1u);
  EXPECT_EQ(plan.rows[0].id, 2u);
}

TEST(Plan, AloneASliceOfPrefillMakesReadingTheWeightsASmallPart) {
  Snapshot snapshot = pool(1000);
  SequenceState alone = waiting(1, 900, 50);
  alone.media = {picture(10, 800, 24, 100)};  // longer than a chunk: it may be cut
  alone.media[0].encoded = true;
  run(snapshot, alone);
  const SchedulerConfig config;
  StepShape row;
  row.add_prefill(1, 0);
  const double row_ms = kPredictors.cost.predict_ms(row);
  const StepPlan whole = plan_step(snapshot, config, kPredictors);
  EXPECT_GT(whole.predicted_ms, 5 * row_ms);
  EXPECT_LE(whole.predicted_ms, 6 * row_ms + 0.1);

  SequenceState other = waiting(2, 900, 50);
  other.media = {picture(10, 800, 24, 100)};
  run(snapshot, other);
  EXPECT_LE(plan_step(snapshot, config, kPredictors).predicted_ms, 2 * row_ms + 0.1);

  snapshot.running.pop_back();
  SchedulerConfig strict;
  strict.classes[static_cast<size_t>(ServiceClass::kInteractive)].ttft_ms = 160;
  EXPECT_LE(plan_step(snapshot, strict, kPredictors).predicted_ms, 40.1)
      << "whoever comes next can still make its first token in time";
}

TEST(Plan, OneItemOfTwoRequestsIsEncodedOnce) {
  Snapshot snapshot = pool(1000);
  for (const uint64_t id : {1, 2}) {
    SequenceState s = waiting(id, 200, 50);
    s.media = {picture(10, 100, 24, 100)};
    snapshot.waiting.push_back(s);
  }
  SchedulerConfig config;
  config.media_share = 1;
  const StepPlan plan = plan_step(snapshot, config, kPredictors);
  EXPECT_EQ(plan.encode.size(), 1u);
  EXPECT_EQ(plan.rows.size(), 2u);
}

TEST(Plan, DecodeRowsTakeAllTheirPagesOrSomebodyGivesWay) {
  Snapshot snapshot = pool(6);
  for (const uint64_t id : {1, 2, 3}) {  // two pages each, all full
    SequenceState s = decoding(id, 30, 3, 50);
    s.arrival_ms = static_cast<double>(id);
    run(snapshot, s);
  }
  snapshot.running[1].service_class = ServiceClass::kBatch;
  SchedulerConfig config;
  config.pause_below = 0;
  const StepPlan plan = plan_step(snapshot, config, kPredictors);
  EXPECT_EQ(plan.preempt, std::vector<uint64_t>{2}) << "the lowest class";
  EXPECT_EQ(plan.rows, (std::vector<RowSlice>{{1, 1, 1}, {3, 1, 1}}));
  snapshot.running[1].n_preempted = 2;
  EXPECT_EQ(plan_step(snapshot, config, kPredictors).preempt, (std::vector<uint64_t>{3, 1}))
      << "one whose budget is spent keeps its pages and its promise";
}

TEST(Plan, WhoIsAheadOfItsPaceWaitsForPagesBeforeAnyoneIsPreempted) {
  Snapshot snapshot = pool(6);
  for (const uint64_t id : {1, 2, 3}) run(snapshot, decoding(id, 30, 3, 50));
  snapshot.running[0].first_token_ms = -50;   // due at 250
  snapshot.running[2].first_token_ms = -100;  // due at 200
  snapshot.running[1].first_token_ms = 300;
  snapshot.free_pages = 1;
  SchedulerConfig config;
  StepPlan plan = plan_step(snapshot, config, kPredictors);
  EXPECT_EQ(plan.paused, (std::vector<uint64_t>{2, 1})) << "the longest lead first";
  EXPECT_TRUE(plan.preempt.empty());
  EXPECT_EQ(plan.rows, (std::vector<RowSlice>{{3, 1, 1}}));
  config.pause_below = 0;
  plan = plan_step(snapshot, config, kPredictors);
  EXPECT_TRUE(plan.paused.empty());
  EXPECT_EQ(plan.preempt, std::vector<uint64_t>{3});
}

TEST(Plan, RequestsThatCanNeverRunAreRefusedWithBothNumbers) {
  Snapshot snapshot = pool(10);
  snapshot.waiting = {waiting(1, 100, 100), waiting(2, 20, 10), waiting(3, 20, 10)};
  snapshot.waiting[1].media = {picture(0, 16, 24, 1)};
  snapshot.waiting[1].media[0].bytes = 9000;
  snapshot.waiting[2].expires_ms = 1;
  const StepPlan plan = plan_step(snapshot, SchedulerConfig{}, kPredictors);
  ASSERT_EQ(plan.ended.size(), 3u);
  EXPECT_EQ(describe(plan.ended[0]), "prompt and answer need 13 KV pages, the pool has 10");
  EXPECT_EQ(describe(plan.ended[1]), "its media need 16200 bytes, 10000 are set aside for media");
  EXPECT_EQ(plan.ended[2].reason, EndReason::kExpired);
  EXPECT_TRUE(plan.admit.empty());
}

TEST(Plan, AnUrgentRequestPushesOutALowerClassOnceHalfItsTimeIsGone) {
  SchedulerConfig config;
  config.push_out = true;
  config.max_running = 1;
  Snapshot snapshot = pool(100);
  run(snapshot, decoding(1, 30, 3, 500));
  snapshot.running[0].service_class = ServiceClass::kBatch;
  snapshot.waiting = {waiting(2, 30, 50)};
  snapshot.waiting[0].service_class = ServiceClass::kInteractive;
  snapshot.now_ms = 400;
  EXPECT_TRUE(plan_step(snapshot, config, kPredictors).preempt.empty());
  snapshot.now_ms = 600;
  const StepPlan plan = plan_step(snapshot, config, kPredictors);
  EXPECT_EQ(plan.preempt, std::vector<uint64_t>{1});
  EXPECT_EQ(plan.admit, std::vector<uint64_t>{2});
}

TEST(Plan, AdmissionCountsTheAnswerThatLengthsLetExpect) {
  Snapshot snapshot = pool(100);
  run(snapshot, decoding(1, 30, 3, 800));  // may grow to 52 pages
  snapshot.waiting = {waiting(2, 30, 800)};
  SchedulerConfig config;
  EXPECT_TRUE(plan_step(snapshot, config, kPredictors).admit.empty()) << "nothing known yet";
  Predictors learnt{CostPriors{}};
  for (int i = 0; i < 1000; ++i) learnt.lengths.observe(ServiceClass::kStandard, 40, true);
  EXPECT_EQ(plan_step(snapshot, config, learnt).admit, std::vector<uint64_t>{2});
  config.admission = AdmissionRule::kWholeLength;
  EXPECT_TRUE(plan_step(snapshot, config, learnt).admit.empty());
  config.admission = AdmissionRule::kPromptOnly;
  EXPECT_EQ(plan_step(snapshot, config, kPredictors).admit, std::vector<uint64_t>{2});
}

TEST(Plan, AdmissionKeepsDecodeWithinTheTightestTarget) {
  SchedulerConfig config;
  config.max_running = 1000;
  config.step_rows = 2000;
  Snapshot snapshot = pool(100000);
  for (uint64_t id = 1; id <= 60; ++id) run(snapshot, decoding(id, 9000, 10, 20));
  for (SequenceState& s : snapshot.running) s.service_class = ServiceClass::kBatch;
  snapshot.waiting = {waiting(100, 30, 50)};
  EXPECT_EQ(plan_step(snapshot, config, kPredictors).admit.size(), 1u);
  snapshot.waiting[0].service_class = ServiceClass::kInteractive;
  EXPECT_TRUE(plan_step(snapshot, config, kPredictors).admit.empty()) << "54 ms a step";
}

TEST(Feasibility, CountsTheWorkAheadAndItsOwn) {
  Snapshot snapshot = pool(1000);
  const SchedulerConfig config;
  SequenceState own = waiting(9, 100, 10);
  own.media = {picture(10, 50, 24, 100)};
  const double alone = estimate_ttft_ms(snapshot, own, config, kPredictors);
  EXPECT_NEAR(alone, 24 * 2.05 + 20.5, 1);
  snapshot.waiting = {waiting(1, 1000, 10)};
  own.arrival_ms = 1;
  EXPECT_NEAR(estimate_ttft_ms(snapshot, own, config, kPredictors), alone + 210, 10);
}

TEST(Config, RefusesBudgetsThatAWholeSpanCouldNotPass) {
  SchedulerConfig config;
  EXPECT_TRUE(validate(config).is_ok());
  config.step_rows = 600;
  EXPECT_EQ(validate(config).message(),
            "scheduler: step_rows (600) must be at least chunk_rows (512) and max_running (128) "
            "together");
  config = {};
  config.classes[1].tpot_ms = 0;
  EXPECT_EQ(validate(config).message(), "scheduler: tpot_ms must be above 0, it is 0");
}

}  // namespace
}  // namespace triptych
