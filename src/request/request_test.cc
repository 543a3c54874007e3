#include "request/request.h"

#include <gtest/gtest.h>

namespace triptych {
namespace {

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
