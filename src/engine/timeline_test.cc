// Where an answer's time went, over a fake machine and a clock that moves only when it works.
#include <gtest/gtest.h>

#include <atomic>
#include <map>

#include "engine/multimodal_engine.h"
#include "engine/test_fakes.h"

namespace triptych {
namespace {

constexpr double kForwardMs = 4;
constexpr double kBlockMs = 2;
constexpr double kMediaMs = 7;

struct Machine {
  std::atomic<double> now_ms = 100;
  FakeRunner* runner = nullptr;
  std::unique_ptr<Engine> engine;

  explicit Machine(EngineConfig config = {}) {
    auto fake = std::make_unique<FakeRunner>();
    runner = fake.get();
    runner->on_forward = [this] { now_ms = now_ms + kForwardMs; };
    runner->on_encode = [this](int64_t n) { now_ms = now_ms + kBlockMs * static_cast<double>(n); };
    auto created = Engine::create(std::move(fake), config, [this] { return now_ms.load(); });
    EXPECT_TRUE(created.is_ok()) << created.status().message();
    engine = std::move(*created);
  }

  /// Timelines of all answers until the engine is idle, by request and choice.
  std::map<std::pair<uint64_t, uint32_t>, Timeline> finish() const {
    std::map<std::pair<uint64_t, uint32_t>, Timeline> out;
    while (!engine->idle()) {
      for (const SequenceEvent& event : engine->step()) {
        EXPECT_EQ(event.timeline.has_value(), event.token.finish != FinishReason::kNone);
        if (event.timeline) out[{event.token.sequence, event.token.choice}] = *event.timeline;
      }
    }
    return out;
  }
};

PreparedRequest with_picture(int number, int64_t max_tokens) {
  std::vector<int32_t> ids(kFakePictureTokens, 7);
  ids.push_back(2);
  PreparedRequest out = fake_prompt(std::move(ids), max_tokens);
  out.spans.push_back({0, kFakePictureTokens, 0});
  out.media.push_back(fake_picture(number));
  return out;
}

double sum(const StageClock& clock) {
  double out = 0;
  for (size_t i = 0; i < kStages; ++i) out += clock.ms(static_cast<Stage>(i));
  return out;
}

TEST(EngineTimeline, StagesInTheEngineSumToTheTimeFromArrivalToTheEnd) {
  const Machine machine;
  const auto id = machine.engine->submit(with_picture(1, 3));
  ASSERT_TRUE(id.is_ok());
  const Timeline timeline = machine.finish().at({*id, 0});
  EXPECT_EQ(timeline.clock.start_ms(), 100);
  EXPECT_EQ(timeline.clock.total_ms(), machine.now_ms - 100);
  EXPECT_EQ(sum(timeline.clock), timeline.clock.total_ms());
  EXPECT_EQ(timeline.clock.ms(Stage::kEncode), kBlockMs * kFakeBlocks);
  EXPECT_EQ(timeline.clock.ms(Stage::kPrefill), kForwardMs);
  EXPECT_EQ(timeline.clock.ms(Stage::kDecode), 2 * kForwardMs);
  EXPECT_EQ(timeline.media_tokens, kFakePictureTokens);
  EXPECT_EQ(timeline.media_tokens_kept, kFakePictureTokens);
  EXPECT_EQ(timeline.media_bytes, 48u);
  EXPECT_EQ(timeline.cache_tier(), CacheTier::kNone);
}

TEST(EngineTimeline, NamesTheCacheThatSparedWork) {
  const Machine machine({.prefix_cache = true});
  ASSERT_TRUE(machine.engine->submit(with_picture(1, 1)).is_ok());
  machine.finish();
  PreparedRequest other = with_picture(1, 1);
  other.ids.insert(other.ids.begin(), 3);  // another beginning, the same picture
  other.spans[0].position = 1;
  const auto encoder = machine.engine->submit(std::move(other));
  const auto prefix = machine.engine->submit(with_picture(1, 1));
  const auto timelines = machine.finish();
  EXPECT_EQ(timelines.at({*encoder, 0}).cache_tier(), CacheTier::kEncoder);
  EXPECT_EQ(timelines.at({*encoder, 0}).clock.ms(Stage::kEncode), 0);
  EXPECT_EQ(timelines.at({*prefix, 0}).cache_tier(), CacheTier::kPrefix);
  EXPECT_EQ(timelines.at({*prefix, 0}).cached_tokens, kFakePictureTokens);
  const EngineCounts& counts = machine.engine->counts();
  EXPECT_EQ(counts.prefix_tokens_asked, 3 * (kFakePictureTokens + 1) + 1);
  EXPECT_EQ(counts.prefix_tokens_found, kFakePictureTokens);
  EXPECT_EQ(counts.media_tokens[static_cast<size_t>(Modality::kImage)], 3 * kFakePictureTokens);
  EXPECT_EQ(counts.preemptions, 0);
}

TEST(EngineTimeline, EachOfSeveralAnswersHasItsOwn) {
  const Machine machine;
  PreparedRequest request = with_picture(1, 3);
  request.sampling.n = 3;
  const auto id = machine.engine->submit(std::move(request));
  const auto timelines = machine.finish();
  ASSERT_EQ(timelines.size(), 3u);
  for (const auto& [key, timeline] : timelines) {
    EXPECT_EQ(timeline.clock.start_ms(), 100);
    EXPECT_EQ(sum(timeline.clock), timeline.clock.total_ms());
    EXPECT_EQ(timeline.clock.ms(Stage::kDecode), 2 * kForwardMs);
  }
}

TEST(EngineTimeline, PreemptedSequencesWaitAndComputeAgain) {
  EngineConfig config;
  config.scheduler.admission = AdmissionRule::kPromptOnly;
  config.prefix_cache = false;
  const Machine machine(config);
  for (int i = 0; i < 6; ++i) {
    PreparedRequest request = with_picture(0, 60);
    request.spans.clear();
    request.media.clear();
    ASSERT_TRUE(machine.engine->submit(std::move(request)).is_ok());
  }
  int n_preempted = 0;
  for (const auto& [key, timeline] : machine.finish()) {
    EXPECT_DOUBLE_EQ(sum(timeline.clock), timeline.clock.total_ms());
    int n_waits = 0;
    for (const auto& span : timeline.clock.spans()) n_waits += span.stage == Stage::kWait;
    n_preempted += n_waits - 1;
  }
  EXPECT_GT(n_preempted, 0);
  EXPECT_EQ(machine.engine->counts().preemptions, n_preempted);
}

TEST(EngineTimeline, TheGaugeMeasuresFromTheLastFeaturesToTheFirstTokensStep) {
  const Machine machine;
  ASSERT_TRUE(machine.engine->submit(with_picture(1, 3)).is_ok());
  machine.finish();
  EXPECT_EQ(machine.engine->encode_to_decode_ms().summary().n_seen, 1u);
  EXPECT_EQ(machine.engine->encode_to_decode_ms().summary().p99, 0) << "in the same step";
  ASSERT_TRUE(machine.engine->submit(with_picture(1, 3)).is_ok());
  machine.finish();
  EXPECT_EQ(machine.engine->encode_to_decode_ms().n_seen(), 1u) << "nothing was encoded for it";
}

TEST(EngineTimeline, CoversTheWayFromSubmitToTheLastEvent) {
  auto machine = std::make_unique<Machine>();
  std::atomic<double>& now_ms = machine->now_ms;
  const auto preparer = std::make_shared<FakePreparer>();
  preparer->with_pixels = true;
  preparer->on_decode = [&] { now_ms = now_ms + kMediaMs; };
  std::optional<Timeline> timeline;
  {
    MultiModalEngine front(std::move(machine->engine), preparer, {});
    const auto stream = front.submit(ask("\1", 2, "picture"), {.fetch_ms = 30});
    ASSERT_TRUE(stream.is_ok());
    while (!timeline) timeline = (*stream)->next(std::chrono::seconds(60))->timeline;
  }
  EXPECT_EQ(timeline->arrival_ms, 100);
  EXPECT_EQ(timeline->clock.total_ms(), 30 + now_ms - 100);
  EXPECT_EQ(sum(timeline->clock), timeline->clock.total_ms());
  EXPECT_EQ(timeline->clock.ms(Stage::kFetch), 30);
  EXPECT_EQ(timeline->clock.ms(Stage::kMediaDecode), kMediaMs);
  EXPECT_EQ(timeline->clock.ms(Stage::kEncode), kBlockMs * kFakeBlocks);
  EXPECT_EQ(timeline->clock.ms(Stage::kDecode), kForwardMs);
}

TEST(EngineTimeline, OfWhatEndedInPreparationEndsThere) {
  auto machine = std::make_unique<Machine>();
  const auto preparer = std::make_shared<FakePreparer>();
  MultiModalEngine front(std::move(machine->engine), preparer, {.threads = 1});
  const auto stream = front.submit(ask("\1", 2, "slow"));
  ASSERT_TRUE(stream.is_ok());
  while (preparer->n_begun == 0) std::this_thread::yield();
  front.cancel((*stream)->id());
  const auto event = (*stream)->next(std::chrono::seconds(60));
  ASSERT_TRUE(event.has_value() && event->timeline.has_value());
  EXPECT_EQ(event->token.finish, FinishReason::kCancelled);
  EXPECT_EQ(event->timeline->clock.ms(Stage::kEncode), 0);
  EXPECT_EQ(sum(event->timeline->clock), event->timeline->clock.total_ms());
  preparer->released = true;
}

}  // namespace
}  // namespace triptych
