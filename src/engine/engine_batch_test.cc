// Many sequences at once: what each draws is what it draws alone, whatever is shared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "backends/backend_list.h"
#include "engine/engine.h"

namespace triptych {
namespace {

constexpr const char* kLlava = "tests/parity/goldens/llava_clip/checkpoint";
constexpr int32_t kImageToken = 6;
constexpr int64_t kImageTokens = 16;
constexpr int64_t kSide = 28;

struct EngineShape {
  int64_t max_sequences = 8;
  int64_t chunk_rows = 96;
  uint64_t kv_cap_bytes = uint64_t{64} << 20;
  int64_t context_tokens = 256;
  bool caches = true;
  AdmissionRule admission = AdmissionRule::kForecast;
};

PreparedMedia picture(int number) {
  PreparedMedia out;
  out.n_tokens = kImageTokens;
  out.id.fill(static_cast<uint8_t>(number + 1));
  Result<Tensor> pixels = Tensor::allocate(DType::kF32, Shape{3, kSide, kSide});
  EXPECT_TRUE(pixels.is_ok());
  std::mt19937 random(static_cast<uint32_t>(number));
  std::uniform_real_distribution<float> value(-2, 2);
  for (int64_t i = 0; i < 3 * kSide * kSide; ++i) pixels->f32()[i] = value(random);
  out.pixels = std::move(*pixels);
  return out;
}

std::unique_ptr<Engine> open(const EngineShape& setup) {
  EngineOptions options;
  options.settings.threads = "2";
  options.limits = {.context_tokens = setup.context_tokens,
                    .max_sequences = setup.max_sequences,
                    .kv_cap_bytes = setup.kv_cap_bytes,
                    .chunk_rows = setup.chunk_rows};
  options.config.scheduler.admission = setup.admission;
  if (!setup.caches) options.turn_caches_off();
  const auto checkpoint = Checkpoint::open(kLlava);
  EXPECT_TRUE(checkpoint.is_ok());
  const auto backend = backends().front().make(options.settings);
  EXPECT_TRUE(backend.is_ok());
  auto engine = Engine::load(**checkpoint, *backend, options);
  EXPECT_TRUE(engine.is_ok()) << engine.status().message();
  return engine.is_ok() ? std::move(*engine) : nullptr;
}

/// A prompt of random text with the pictures of these numbers in between.
PreparedRequest request(uint32_t seed, const std::vector<int>& pictures, int64_t max_tokens) {
  std::mt19937 random(seed);
  PreparedRequest out;
  out.n_known_tokens = 360;
  out.sampling.max_tokens = max_tokens;
  out.sampling.ignore_eos = true;
  const auto text = [&](size_t n) {
    for (size_t i = 0; i < n; ++i) out.ids.push_back(static_cast<int32_t>(10 + random() % 300));
  };
  text(1 + random() % 20);
  for (const int number : pictures) {
    out.spans.push_back({static_cast<int64_t>(out.ids.size()), kImageTokens, out.media.size()});
    out.media.push_back(std::make_shared<PreparedMedia>(picture(number)));
    out.ids.insert(out.ids.end(), kImageTokens, kImageToken);
    text(1 + random() % 30);
  }
  return out;
}

struct Answer {
  std::vector<int32_t> tokens;
  FinishReason finish = FinishReason::kNone;
  Status error;
  bool ends_request = false;
};

void take(const std::vector<SequenceEvent>& events, std::map<uint64_t, Answer>& answers) {
  for (const SequenceEvent& event : events) {
    Answer& answer = answers[event.token.sequence];
    EXPECT_EQ(answer.finish, FinishReason::kNone) << "an event behind the last";
    if (event.token.token >= 0) answer.tokens.push_back(event.token.token);
    answer.finish = event.token.finish;
    answer.error = event.token.error;
    answer.ends_request = event.ends_request;
  }
}

/// Steps until all sequences have ended; the contracts hold after each step.
void drain(Engine& engine, std::map<uint64_t, Answer>& answers, int64_t most_steps = 20000) {
  for (int64_t i = 0; !engine.idle(); ++i) {
    ASSERT_LT(i, most_steps) << "no end";
    take(engine.step(), answers);
    const Status status = engine.check_invariants();
    ASSERT_TRUE(status.is_ok()) << status.message();
  }
}

std::vector<int32_t> alone(const EngineShape& setup, uint32_t seed,
                           const std::vector<int>& pictures, int64_t max_tokens) {
  const auto engine = open(setup);
  const auto id = engine->submit(request(seed, pictures, max_tokens));
  EXPECT_TRUE(id.is_ok()) << id.status().message();
  std::map<uint64_t, Answer> answers;
  drain(*engine, answers);
  return answers[*id].tokens;
}

struct Case {
  uint32_t seed;
  std::vector<int> pictures;
  int64_t max_tokens;
};

std::vector<Case> random_cases(uint32_t seed, int n) {
  std::mt19937 random(seed);
  std::vector<Case> out;
  for (int i = 0; i < n; ++i) {
    Case c{static_cast<uint32_t>(random() % 6), {}, static_cast<int64_t>(1 + random() % 24)};
    for (uint32_t k = random() % 3; k > 0; --k)
      c.pictures.push_back(static_cast<int>(random() % 3));
    out.push_back(c);
  }
  return out;
}

TEST(EngineBatch, BatchedCachedChunkedAndPreemptedAnswersAreThoseOfASequenceAlone) {
  const EngineShape plain{.max_sequences = 1, .chunk_rows = 256, .caches = false};
  const std::vector<Case> cases = random_cases(1, 24);
  std::vector<std::vector<int32_t>> expected;
  for (const Case& c : cases) expected.push_back(alone(plain, c.seed, c.pictures, c.max_tokens));
  const EngineShape setups[] = {
      {.caches = false},
      {.caches = true},
      {.max_sequences = 8, .chunk_rows = 24},
      {.max_sequences = 3, .chunk_rows = 40},
      // 28 pages of 16 tokens: not all sequences fit, some are preempted or wait.
      {.max_sequences = 8, .chunk_rows = 64, .kv_cap_bytes = 56 << 10, .context_tokens = 0},
  };
  for (const EngineShape& setup : setups) {
    const auto engine = open(setup);
    std::map<uint64_t, Answer> answers;
    std::vector<uint64_t> ids;
    std::mt19937 random(7);
    for (const Case& c : cases) {
      const auto id = engine->submit(request(c.seed, c.pictures, c.max_tokens));
      ASSERT_TRUE(id.is_ok()) << id.status().message();
      ids.push_back(*id);
      for (uint32_t k = random() % 4; k > 0; --k) take(engine->step(), answers);
    }
    drain(*engine, answers);
    for (size_t i = 0; i < cases.size(); ++i) {
      EXPECT_EQ(answers[ids[i]].finish, FinishReason::kLength) << answers[ids[i]].error.message();
      EXPECT_EQ(answers[ids[i]].tokens, expected[i])
          << "case " << i << ", " << setup.max_sequences << " sequences, " << setup.chunk_rows
          << " rows, caches " << setup.caches;
    }
  }
}

TEST(EngineBatch, APictureSeenBeforeIsNotEncodedAgain) {
  const auto engine = open({});
  std::map<uint64_t, Answer> answers;
  ASSERT_TRUE(engine->submit(request(1, {0}, 2)).is_ok());
  drain(*engine, answers);
  EXPECT_EQ(engine->encoder_cache().stats().items[1].misses, 1);
  ASSERT_TRUE(engine->submit(request(2, {0}, 2)).is_ok());
  ASSERT_TRUE(engine->submit(request(3, {0}, 2)).is_ok());
  drain(*engine, answers);
  EXPECT_EQ(engine->encoder_cache().stats().items[1].misses, 1);
  EXPECT_EQ(engine->encoder_cache().stats().items[1].hits, 2);
}

TEST(EngineBatch, TheSamePictureInFlightIsEncodedOnce) {
  const auto engine = open({});
  std::map<uint64_t, Answer> answers;
  for (uint32_t seed = 1; seed <= 4; ++seed)
    ASSERT_TRUE(engine->submit(request(seed, {0}, 3)).is_ok());
  drain(*engine, answers);
  EXPECT_EQ(engine->encoder_cache().stats().items[1].misses, 1);
}

TEST(EngineBatch, AnEqualBeginningIsComputedOnce) {
  const auto engine = open({});
  std::map<uint64_t, Answer> answers;
  const auto first = engine->submit(request(5, {0, 1}, 8));
  drain(*engine, answers);
  const auto second = engine->submit(request(5, {0, 1}, 8));
  drain(*engine, answers);
  EXPECT_EQ(answers[*first].tokens, answers[*second].tokens);
  EXPECT_GE(engine->prefix_index().stats().tokens_saved, 32);
}

TEST(EngineBatch, WhoCameAtTheSameTimeTakesOverWhatTheFirstHasComputed) {
  const std::vector<int32_t> expected = alone({.caches = false}, 5, {0, 1}, 8);
  const auto engine = open({.max_sequences = 4, .chunk_rows = 24});
  std::map<uint64_t, Answer> answers;
  std::vector<uint64_t> ids;
  for (int i = 0; i < 4; ++i) {
    const auto id = engine->submit(request(5, {0, 1}, 8));
    ASSERT_TRUE(id.is_ok()) << id.status().message();
    ids.push_back(*id);
  }
  drain(*engine, answers);
  for (const uint64_t id : ids) EXPECT_EQ(answers[id].tokens, expected);
  const int64_t whole_pages = (static_cast<int64_t>(request(5, {0, 1}, 8).ids.size()) - 24) / 16;
  EXPECT_GE(engine->prefix_index().stats().tokens_saved, 3 * 16 * whole_pages);
}

TEST(EngineBatch, TenantsShareNothing) {
  const auto engine = open({});
  std::map<uint64_t, Answer> answers;
  ASSERT_TRUE(engine->submit(request(5, {0, 1}, 4), {.tenant = 1}).is_ok());
  drain(*engine, answers);
  ASSERT_TRUE(engine->submit(request(5, {0, 1}, 4), {.tenant = 2}).is_ok());
  drain(*engine, answers);
  EXPECT_EQ(engine->prefix_index().stats().tokens_saved, 0);
  EXPECT_EQ(engine->encoder_cache().stats().items[1].hits, 0);
}

TEST(EngineBatch, CancellingTheOneWhoEncodesLeavesTheOthersTheirPicture) {
  const auto engine = open({});
  const std::vector<int32_t> expected = alone({.caches = false}, 2, {0}, 6);
  std::map<uint64_t, Answer> answers;
  const auto first = engine->submit(request(1, {0}, 6));
  const auto second = engine->submit(request(2, {0}, 6));
  engine->cancel(*first);
  drain(*engine, answers);
  EXPECT_EQ(answers[*first].finish, FinishReason::kCancelled);
  EXPECT_EQ(answers[*second].tokens, expected);
}

TEST(EngineBatch, RandomCancelsLeaveNoPageBehind) {
  const auto engine = open({.kv_cap_bytes = 56 << 10, .context_tokens = 0});
  std::map<uint64_t, Answer> answers;
  std::vector<uint64_t> ids;
  std::mt19937 random(11);
  for (const Case& c : random_cases(3, 60)) {
    const auto id = engine->submit(request(c.seed, c.pictures, c.max_tokens));
    ASSERT_TRUE(id.is_ok()) << id.status().message();
    ids.push_back(*id);
    for (uint32_t k = random() % 5; k > 0; --k) take(engine->step(), answers);
    if (random() % 3 == 0) engine->cancel(ids[random() % ids.size()]);
  }
  drain(*engine, answers);
  const Result<Snapshot> end = engine->snapshot();
  ASSERT_TRUE(end.is_ok());
  EXPECT_EQ(end->available_pages(), end->total_pages);
  EXPECT_EQ(engine->encoder_cache().n_in_flight(), 0);
  EXPECT_EQ(engine->encoder_cache().in_use_bytes(), 0u);
}

TEST(EngineBatch, ALateRequestEndsWithItsDeadline) {
  const auto engine = open({});
  std::map<uint64_t, Answer> answers;
  const auto id = engine->submit(request(1, {0}, 200), {.deadline_ms = 0.001});
  drain(*engine, answers);
  EXPECT_EQ(answers[*id].finish, FinishReason::kError);
  EXPECT_EQ(answers[*id].error.code(), StatusCode::kDeadlineExceeded);
}

/// Steps one request with several answers until it ends; the answers by choice.
std::vector<std::vector<int32_t>> answers_of(Engine& engine, PreparedRequest prepared) {
  std::vector<std::vector<int32_t>> out(static_cast<size_t>(prepared.sampling.n));
  const auto id = engine.submit(std::move(prepared));
  EXPECT_TRUE(id.is_ok()) << id.status().message();
  int ends = 0;
  for (int step = 0; !engine.idle() && step < 5000; ++step) {
    for (const SequenceEvent& event : engine.step()) {
      EXPECT_EQ(event.token.sequence, *id);
      EXPECT_TRUE(event.token.error.is_ok()) << event.token.error.message();
      if (event.token.token >= 0) out[event.token.choice].push_back(event.token.token);
      ends += event.ends_request;
    }
    const Status status = engine.check_invariants();
    EXPECT_TRUE(status.is_ok()) << status.message();
  }
  EXPECT_EQ(ends, 1);
  return out;
}

PreparedRequest several(int64_t n) {
  PreparedRequest out = request(9, {0}, 12);
  out.sampling.n = n;
  out.sampling.temperature = 1;
  out.sampling.seed = 77;
  return out;
}

TEST(EngineBatch, SeveralAnswersShareThePromptAndDifferInWhatTheyDraw) {
  const auto engine = open({});
  const auto four = answers_of(*engine, several(4));
  EXPECT_EQ(engine->encoder_cache().stats().items[1].misses, 1);
  for (const auto& tokens : four) EXPECT_EQ(tokens.size(), 12u);
  EXPECT_NE(four[0], four[1]);
  EXPECT_NE(four[1], four[2]);
  EXPECT_EQ(answers_of(*open({.caches = false}), several(1))[0], four[0])
      << "the first is that of n = 1";
}

TEST(EngineBatch, MoreAnswersThanSlotsWaitTheirTurn) {
  const auto wide = answers_of(*open({}), several(6));
  EXPECT_EQ(answers_of(*open({.max_sequences = 2}), several(6)), wide);
  EXPECT_EQ(answers_of(*open({.max_sequences = 2, .caches = false}), several(6)), wide);
}

TEST(EngineBatch, CancellingEndsAllAnswersOfARequest) {
  const auto engine = open({});
  const auto id = engine->submit(several(3));
  ASSERT_TRUE(id.is_ok());
  engine->cancel(*id);
  const auto events = engine->step();
  ASSERT_EQ(events.size(), 3u) << "an end for each of the answers, begun or not";
  EXPECT_TRUE(events.back().ends_request);
  EXPECT_TRUE(engine->idle());
}

TEST(EngineBatch, APoolThatIsTooSmallForAllPreemptsAndLosesNothing) {
  const EngineShape small{.kv_cap_bytes = 56 << 10,
                          .context_tokens = 0,
                          .caches = false,
                          .admission = AdmissionRule::kPromptOnly};
  std::vector<std::vector<int32_t>> expected;
  for (uint32_t seed = 0; seed < 6; ++seed) {
    expected.push_back(alone({.max_sequences = 1, .caches = false}, seed, {}, 120));
  }
  const auto engine = open(small);
  std::map<uint64_t, Answer> answers;
  std::vector<uint64_t> ids;
  for (uint32_t seed = 0; seed < 6; ++seed) ids.push_back(*engine->submit(request(seed, {}, 120)));
  int32_t preempted = 0;
  while (!engine->idle()) {
    const std::vector<SequenceEvent> events = engine->step();
    take(events, answers);
    for (const SequenceEvent& event : events) {
      if (event.ends_request) preempted += event.usage.preemptions;
    }
  }
  EXPECT_GT(preempted, 0) << "the pool is not small enough to show anything";
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(answers[ids[i]].tokens, expected[i]) << i;
}

}  // namespace
}  // namespace triptych
