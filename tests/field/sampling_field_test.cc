// Reports about sampling and limits (F45, F47), at the level where prep and engine meet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/file.h"
#include "parity/runner.h"

namespace triptych {
namespace {

using parity::Runner;
using testing::HasSubstr;

const std::string kCheckpoint = "tests/parity/goldens/llava_clip/checkpoint";

Request question(SamplingParams sampling) {
  Request request;
  Result<std::string> bytes = read_file("tests/parity/goldens/pictures/waves_37x53.png");
  EXPECT_TRUE(bytes.is_ok()) << bytes.status().message();
  request.media.push_back({Modality::kImage, "waves_37x53.png",
                           std::make_shared<const std::string>(std::move(bytes).value())});
  request.messages.push_back({"user", {{"", 0}, {"What is this?", std::nullopt}}});
  request.sampling = std::move(sampling);
  return request;
}

Result<std::vector<int32_t>> answer(Runner& runner, const SamplingParams& sampling) {
  TRIPTYCH_ASSIGN_OR_RETURN(PreparedRequest prepared, runner.prepare(question(sampling)));
  TRIPTYCH_ASSIGN_OR_RETURN(const uint64_t id, runner.engine->submit(std::move(prepared)));
  std::vector<int32_t> out;
  while (!runner.engine->idle()) {
    for (const SequenceEvent& event : runner.engine->step()) {
      EXPECT_EQ(event.token.sequence, id);
      if (event.token.finish == FinishReason::kError) return event.token.error;
      if (event.token.token >= 0) out.push_back(event.token.token);
    }
  }
  return out;
}

class SamplingReports : public testing::Test {
 protected:
  void SetUp() override {
    Result<Runner> runner = Runner::open(kCheckpoint);
    ASSERT_TRUE(runner.is_ok()) << runner.status().message();
    runner_ = std::move(*runner);
    greedy_ = alive();
  }
  /// The greedy answer, which must stay what it is whatever was refused before.
  std::vector<int32_t> alive() {
    const auto ids = answer(runner_, {.max_tokens = 8, .ignore_eos = true});
    EXPECT_TRUE(ids.is_ok()) << ids.status().message();
    return ids.is_ok() ? *ids : std::vector<int32_t>();
  }

  Runner runner_;
  std::vector<int32_t> greedy_;
};

TEST_F(SamplingReports, F45BadValuesAreRefusedByNameBeforeTheModelSeesThem) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const auto vocab = static_cast<int32_t>(runner_.prep->tokenizer().vocab_size());
  const std::pair<const char*, SamplingParams> cases[] = {
      {"logit_bias", {.logit_bias = {{vocab + 5, 1}}}},
      {"logit_bias", {.logit_bias = {{-1, 1}}}},
      {"temperature", {.temperature = nan}},
      {"temperature", {.temperature = inf}},
      {"temperature", {.temperature = -1}},
      {"top_p", {.top_p = 0}},
      {"top_p", {.top_p = 1.5}},
      {"min_p", {.min_p = 2}},
      {"top_k", {.top_k = -5}},
      {"stop_token_ids", {.stop_token_ids = {vocab}}}};
  for (const auto& [field, sampling] : cases) {
    const auto ids = answer(runner_, sampling);
    EXPECT_EQ(ids.status().code(), StatusCode::kInvalidArgument) << field;
    EXPECT_THAT(ids.status().message(), HasSubstr(field));
    EXPECT_EQ(alive(), greedy_) << field;
  }
}

TEST_F(SamplingReports, F45TopKOffAndGreedyWhateverElse) {
  const auto drawn = [&](int64_t top_k) {
    return *answer(
        runner_,
        {.temperature = 1, .top_k = top_k, .seed = 1, .max_tokens = 8, .ignore_eos = true});
  };
  EXPECT_EQ(drawn(-1), drawn(0));
  for (int64_t top_k : {-1, 0, 1, 50}) {
    EXPECT_EQ(*answer(runner_, {.top_k = top_k, .seed = 9, .max_tokens = 8, .ignore_eos = true}),
              greedy_);
  }
}

TEST_F(SamplingReports, F47ASeededAnswerDoesNotDependOnOtherRequests) {
  const SamplingParams seeded{.temperature = 1, .seed = 42, .max_tokens = 16, .ignore_eos = true};
  SamplingParams unseeded = seeded;
  unseeded.seed.reset();
  SamplingParams mate = seeded;
  mate.seed = 43;
  const std::vector<int32_t> want = *answer(runner_, seeded);
  std::vector<std::vector<int32_t>> others;
  for (int round = 0; round < 4; ++round) {
    others.push_back(*answer(runner_, unseeded));
    EXPECT_EQ(*answer(runner_, seeded), want);
    EXPECT_NE(*answer(runner_, mate), want);
    EXPECT_EQ(*answer(runner_, seeded), want);
  }
  EXPECT_NE(others[0], others[1]);  // every request without a seed has its own
}

TEST_F(SamplingReports, AGrammarThatDoesNotCompileIsRefusedBeforeAPixelIsDecoded) {
  Request request =
      question({.grammar = GrammarSpec{GrammarKind::kRegex, "(", "response_format.regex"}});
  request.media[0].bytes = std::make_shared<const std::string>(
      request.media[0].bytes->substr(0, request.media[0].bytes->size() / 2));
  const auto prepared = runner_.prepare(request);
  EXPECT_EQ(prepared.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(prepared.status().message(), testing::StartsWith("response_format.regex: "));
}

}  // namespace
}  // namespace triptych
