#include "engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "backends/backend_list.h"
#include "base/file.h"

namespace triptych {
namespace {

using testing::HasSubstr;

constexpr const char* kTiny = "tests/parity/goldens/text_llama/checkpoint";

Result<std::unique_ptr<Engine>> open(const std::string& path, PlanLimits limits = {}) {
  EngineOptions options;
  options.settings.threads = "2";
  options.limits = limits;
  TRIPTYCH_ASSIGN_OR_RETURN(const auto checkpoint, Checkpoint::open(path));
  TRIPTYCH_ASSIGN_OR_RETURN(const Backend backend, backends().front().make(options.settings));
  return Engine::load(*checkpoint, backend, options);
}

PreparedRequest prompt(std::vector<int32_t> ids, SamplingParams sampling) {
  PreparedRequest out;
  out.ids = std::move(ids);
  out.sampling = std::move(sampling);
  out.n_known_tokens = 1 << 20;
  return out;
}

struct Outcome {
  std::vector<int32_t> tokens;
  TokenEvent last;
  Usage usage;
};

Outcome finish(Engine& engine, PreparedRequest request) {
  Outcome out;
  const Result<uint64_t> id = engine.submit(std::move(request));
  EXPECT_TRUE(id.is_ok()) << id.status().message();
  while (!engine.idle()) {
    for (const SequenceEvent& event : engine.step()) {
      if (event.token.token >= 0) out.tokens.push_back(event.token.token);
      out.last = event.token;
      out.usage = event.usage;
    }
  }
  return out;
}

SamplingParams free_running(int64_t max_tokens) {
  SamplingParams p;
  p.max_tokens = max_tokens;
  p.ignore_eos = true;
  return p;
}

TEST(Engine, StopsAtMaxTokensAndGivesPagesBack) {
  const auto engine = open(kTiny);
  ASSERT_TRUE(engine.is_ok()) << engine.status().message();
  for (int round = 0; round < 3; ++round) {
    const Outcome run = finish(**engine, prompt({1, 2, 3}, free_running(5)));
    EXPECT_EQ(run.tokens.size(), 5u);
    EXPECT_EQ(run.last.finish, FinishReason::kLength);
    EXPECT_EQ(run.usage.completion_tokens, 5);
    EXPECT_EQ(run.usage.decode_steps(), 4);
    EXPECT_EQ(run.usage.prompt_tokens, 3);
  }
}

TEST(Engine, EndsAtTheContextLimitWithoutAnError) {
  const auto engine = open(kTiny, {.context_tokens = 20});
  ASSERT_TRUE(engine.is_ok());
  const Outcome run = finish(**engine, prompt({1, 2, 3, 4}, free_running(0)));
  EXPECT_EQ(run.last.finish, FinishReason::kLength);
  EXPECT_EQ(run.tokens.size(), 16u);
}

TEST(Engine, RefusesAPromptThatFillsTheContext) {
  const auto engine = open(kTiny, {.context_tokens = 8});
  ASSERT_TRUE(engine.is_ok());
  const auto id = (*engine)->submit(prompt(std::vector<int32_t>(8, 1), free_running(1)));
  EXPECT_EQ(id.status().code(), StatusCode::kOutOfRange);
  EXPECT_THAT(id.status().message(), HasSubstr("8"));
  EXPECT_TRUE((*engine)->idle());
}

TEST(Engine, RefusesAnEmptyPrompt) {
  const auto engine = open(kTiny);
  ASSERT_TRUE(engine.is_ok());
  EXPECT_EQ((*engine)->submit(prompt({}, {})).status().code(), StatusCode::kInvalidArgument);
}

TEST(Engine, CancelEndsTheSequenceAndTheNextOneRuns) {
  const auto engine = open(kTiny);
  ASSERT_TRUE(engine.is_ok());
  const auto id = (*engine)->submit(prompt({1, 2}, free_running(0)));
  ASSERT_TRUE(id.is_ok());
  (*engine)->step();
  (*engine)->cancel(*id);
  const auto events = (*engine)->step();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].token.finish, FinishReason::kCancelled);
  EXPECT_TRUE((*engine)->idle());
  EXPECT_EQ(finish(**engine, prompt({1, 2}, free_running(4))).tokens.size(), 4u);
}

TEST(Engine, RefusesATokenOutsideTheVocabulary) {
  const auto engine = open(kTiny);
  ASSERT_TRUE(engine.is_ok());
  const auto bad = (*engine)->submit(prompt({1, 1 << 20}, free_running(2)));
  EXPECT_EQ(bad.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(bad.status().message(), HasSubstr("outside the vocabulary"));
  EXPECT_EQ(finish(**engine, prompt({1, 2}, free_running(2))).tokens.size(), 2u);
}

TEST(Engine, SeededAnswersRepeatAndDoNotDependOnWhatRanBefore) {
  const auto engine = open(kTiny);
  ASSERT_TRUE(engine.is_ok());
  SamplingParams p = free_running(24);
  p.temperature = 1;
  p.seed = 42;
  const Outcome first = finish(**engine, prompt({1, 2, 3}, p));
  SamplingParams other = p;
  other.seed.reset();
  finish(**engine, prompt({9, 8, 7, 6}, other));
  EXPECT_EQ(finish(**engine, prompt({1, 2, 3}, p)).tokens, first.tokens);
}

TEST(Engine, ASpanThatDoesNotFitItsMediaIsOurFault) {
  const auto engine = open(kTiny);
  ASSERT_TRUE(engine.is_ok());
  PreparedRequest request = prompt({1, 2, 3}, free_running(1));
  request.spans.push_back({.position = 1, .length = 2, .media = 0});
  EXPECT_EQ((*engine)->submit(std::move(request)).status().code(), StatusCode::kInternal);
}

/// The tiny checkpoint with its final norm full of NaN, as a 16-bit overflow would leave it.
std::string broken_checkpoint() {
  std::string folder = testing::TempDir() + "nan_checkpoint";
  std::filesystem::remove_all(folder);
  std::filesystem::copy(kTiny, folder);
  Result<std::string> file = read_file(folder + "/model.safetensors");
  EXPECT_TRUE(file.is_ok());
  uint64_t header = 0;
  std::memcpy(&header, file->data(), sizeof(header));
  std::memset(file->data() + 8 + header, 0xff, file->size() - 8 - header);
  std::filesystem::permissions(folder + "/model.safetensors", std::filesystem::perms::owner_all);
  EXPECT_TRUE(write_file(folder + "/model.safetensors", *file).is_ok());
  return folder;
}

TEST(Engine, NumbersThatBrokeEndTheAnswerWithAnError) {
  const auto engine = open(broken_checkpoint());
  ASSERT_TRUE(engine.is_ok()) << engine.status().message();
  const Outcome run = finish(**engine, prompt({1, 2, 3}, free_running(4)));
  EXPECT_EQ(run.last.finish, FinishReason::kError);
  EXPECT_TRUE(run.tokens.empty());
  EXPECT_THAT(run.last.error.message(), HasSubstr("not a number"));
}

TEST(Engine, UnknownSettingsAreNamed) {
  EngineOptions options;
  options.settings.matmul = "f64";
  const auto checkpoint = Checkpoint::open(kTiny);
  ASSERT_TRUE(checkpoint.is_ok());
  const auto backend = backends().front().make(options.settings);
  ASSERT_TRUE(backend.is_ok());
  const auto engine = Engine::load(**checkpoint, *backend, options);
  EXPECT_EQ(engine.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(engine.status().message(), HasSubstr("TRIPTYCH_MATMUL"));
}

TEST(Engine, ScoresAreLogProbabilitiesAndDoNotDependOnTheWindow) {
  const auto engine = open(kTiny);
  ASSERT_TRUE(engine.is_ok());
  const std::vector<int32_t> ids = {1, 5, 9, 2, 7, 3, 8, 4};
  const auto whole = (*engine)->score(ids, 64);
  ASSERT_TRUE(whole.is_ok()) << whole.status().message();
  ASSERT_EQ(whole->size(), ids.size() - 1);
  for (double p : *whole) EXPECT_LT(p, 0);
  const auto first = (*engine)->score({1, 5, 9, 2}, 64);
  ASSERT_TRUE(first.is_ok());
  for (size_t i = 0; i < first->size(); ++i) EXPECT_DOUBLE_EQ((*first)[i], (*whole)[i]);
}

TEST(MemoryPlan, KeepsTheContextWithinTheCap) {
  const auto engine = open(kTiny, {.context_tokens = 0, .kv_cap_bytes = 1 << 20});
  ASSERT_TRUE(engine.is_ok()) << engine.status().message();
  EXPECT_LE((*engine)->model_runner().plan().kv_bytes, uint64_t{1} << 20);
  EXPECT_GT((*engine)->model_runner().plan().context_tokens, 0);
  const auto too_long = open(kTiny, {.context_tokens = 1 << 24});
  EXPECT_EQ(too_long.status().code(), StatusCode::kInvalidArgument);
}

TEST(MemoryPlan, SharesOneCapAmongAllThatGrows) {
  constexpr const char* kDemo = "models/demo";
  for (const uint64_t mib : {48, 64, 200, 512, 16384}) {
    const auto engine = open(kDemo, {.max_sequences = 16, .memory_cap_bytes = mib << 20});
    ASSERT_TRUE(engine.is_ok()) << engine.status().message();
    const MemoryPlan& plan = (*engine)->model_runner().plan();
    EXPECT_LE(plan.at_most(), mib << 20);
    EXPECT_GT(plan.media.in_work_bytes, 3 * plan.encode_bytes) << "a picture can be encoded";
    EXPECT_GT(plan.context_tokens, 600) << "and asked about";
  }
  const auto roomy = open(kDemo, {.memory_cap_bytes = uint64_t{1} << 40});
  ASSERT_TRUE(roomy.is_ok());
  EXPECT_EQ((*roomy)->model_runner().plan().media.total(), MediaCaps{}.total())
      << "a part's own cap holds too";
}

TEST(MemoryPlan, ACapBelowTheWeightsNamesWhatTheModelNeeds) {
  const Status refused = open("models/demo", {.memory_cap_bytes = 20 << 20}).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("20 MiB"));
  EXPECT_THAT(refused.message(), HasSubstr("weights take 2"));
}

TEST(MemoryPlan, ATextModelKeepsNoMediaCaches) {
  const auto engine = open(kTiny);
  ASSERT_TRUE(engine.is_ok());
  const MediaCaps& media = (*engine)->model_runner().plan().media;
  EXPECT_EQ(media.encoder_cache_bytes + media.pixel_cache_bytes + media.in_work_bytes, 0u);
  EXPECT_GT(media.request_bytes, 0u);
}

}  // namespace
}  // namespace triptych
