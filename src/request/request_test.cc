#include "request/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace triptych {
namespace {

using testing::HasSubstr;

TEST(SamplingParams, DefaultsAreValid) { EXPECT_TRUE(validate(SamplingParams{}).is_ok()); }

TEST(SamplingParams, OffValuesAreValid) {
  SamplingParams p;
  p.top_k = -1;
  EXPECT_TRUE(validate(p).is_ok());
  p.top_k = 0;
  EXPECT_TRUE(validate(p).is_ok());
}

TEST(SamplingParams, EachBadValueNamesItsField) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const auto expect_bad = [](const char* field, auto set) {
    SamplingParams p;
    set(p);
    const Status status = validate(p);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << field;
    EXPECT_THAT(status.message(), HasSubstr(field));
  };
  for (double v : {nan, inf, -1.0, 101.0}) {
    expect_bad("temperature", [v](SamplingParams& p) { p.temperature = v; });
  }
  for (double v : {nan, 0.0, 1.5, -0.1}) {
    expect_bad("top_p", [v](SamplingParams& p) { p.top_p = v; });
  }
  for (double v : {nan, -0.1, 2.0}) expect_bad("min_p", [v](SamplingParams& p) { p.min_p = v; });
  for (double v : {nan, 0.0, -1.0, inf}) {
    expect_bad("repetition_penalty", [v](SamplingParams& p) { p.repetition_penalty = v; });
  }
  expect_bad("top_k", [](SamplingParams& p) { p.top_k = -5; });
  expect_bad("max_tokens", [](SamplingParams& p) { p.max_tokens = -1; });
}

TEST(Usage, FiguresOfStepsThatDidNotRunAreAbsent) {
  Usage cancelled{.prompt_tokens = 9, .prep_ms = 1, .encode_ms = 2};
  EXPECT_EQ(cancelled.ttft_ms(), std::nullopt);
  EXPECT_EQ(cancelled.decode_tokens_per_s(), std::nullopt);
  Usage one{.completion_tokens = 1, .drawn_tokens = 1, .prep_ms = 1, .prefill_ms = 3};
  EXPECT_EQ(one.ttft_ms(), 4.0);
  EXPECT_EQ(one.decode_steps(), 0);
  EXPECT_EQ(one.decode_tokens_per_s(), std::nullopt);
}

TEST(Usage, TheStepThatDrawsTheEndTokenCounts) {
  Usage one{.completion_tokens = 1, .drawn_tokens = 2, .decode_ms = 4};
  EXPECT_EQ(one.decode_tokens_per_s(), 250.0);
}

TEST(FinishReason, NamesAreThoseOfTheApi) {
  EXPECT_EQ(finish_reason_name(FinishReason::kStop), "stop");
  EXPECT_EQ(finish_reason_name(FinishReason::kLength), "length");
  EXPECT_EQ(finish_reason_name(FinishReason::kNone), "");
}

}  // namespace
}  // namespace triptych
