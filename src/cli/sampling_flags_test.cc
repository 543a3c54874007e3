#include "cli/sampling_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace triptych::cli {
namespace {

using testing::HasSubstr;

TEST(SamplingFlags, UnsetOnesKeepTheCheckpointsDefaults) {
  const SamplingParams defaults{.temperature = 0.7, .top_k = 40, .repetition_penalty = 1.1};
  const auto kept = SamplingFlags{}.apply(defaults);
  ASSERT_TRUE(kept.is_ok());
  EXPECT_EQ(kept->temperature, 0.7);
  EXPECT_EQ(kept->top_k, 40);
  EXPECT_EQ(kept->repetition_penalty, 1.1);
  EXPECT_FALSE(kept->logprobs);
  SamplingFlags flags;
  flags.top_k = 0;
  flags.logprobs = 0;
  const auto set = flags.apply(defaults);
  ASSERT_TRUE(set.is_ok());
  EXPECT_EQ(set->top_k, 0);
  EXPECT_TRUE(set->logprobs);
}

TEST(SamplingFlags, ABiasIsIdAndNumber) {
  SamplingFlags flags;
  flags.logit_bias = {"42=-100", "7=2.5"};
  const auto params = flags.apply({});
  ASSERT_TRUE(params.is_ok());
  EXPECT_EQ(params->logit_bias, (std::vector<std::pair<int32_t, double>>{{42, -100}, {7, 2.5}}));
  for (const char* bad : {"", "42", "42=", "=1", "a=1", "42=1x", "99999999999=1"}) {
    flags.logit_bias = {bad};
    EXPECT_THAT(flags.apply({}).status().message(), HasSubstr("ID=BIAS")) << bad;
  }
}

TEST(SamplingFlags, OneGrammarWithItsSource) {
  SamplingFlags flags;
  flags.choices = {"yes", "no \"maybe\""};
  const auto choice = flags.apply({});
  ASSERT_TRUE(choice.is_ok());
  EXPECT_EQ(choice->grammar->kind, GrammarKind::kChoice);
  EXPECT_EQ(choice->grammar->text, R"(["yes","no \"maybe\""])");
  flags.regex = "a+";
  EXPECT_EQ(flags.apply({}).status().code(), StatusCode::kInvalidArgument);
  flags.choices.clear();
  EXPECT_EQ(flags.apply({})->grammar->source, "--regex");
  flags.regex.clear();
  const std::string path = testing::TempDir() + "sampling_flags.lark";
  ASSERT_TRUE(write_file(path, "start: \"a\"").is_ok());
  flags.lark_file = path;
  EXPECT_EQ(flags.apply({})->grammar->text, "start: \"a\"");
  EXPECT_EQ(flags.apply({})->grammar->source, path);
  flags.lark_file = path + ".missing";
  EXPECT_EQ(flags.apply({}).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace triptych::cli
