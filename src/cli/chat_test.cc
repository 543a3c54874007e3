#include "cli/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace triptych::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(FiguresLine, HasARateWhereAStepWasMeasured) {
  const Usage usage{.prompt_tokens = 590,
                    .media_tokens = 576,
                    .completion_tokens = 21,
                    .drawn_tokens = 21,
                    .encode_ms = 30,
                    .prefill_ms = 11,
                    .decode_ms = 100};
  EXPECT_THAT(figures_line(usage),
              StartsWith("576 image tokens of 590, TTFT 41 ms, 200 tokens/s, peak memory "));
}

TEST(FiguresLine, AnAnswerOfOneTokenHasNoRate) {
  const Usage usage{
      .prompt_tokens = 9, .completion_tokens = 1, .drawn_tokens = 1, .prefill_ms = 11};
  EXPECT_THAT(figures_line(usage), StartsWith("0 image tokens of 9, TTFT 11 ms, peak memory "));
}

TEST(FiguresLine, AnAnswerStoppedBeforeItsFirstTokenHasNoTime) {
  const Usage usage{.prompt_tokens = 590, .media_tokens = 576, .encode_ms = 30};
  EXPECT_THAT(figures_line(usage), Not(HasSubstr("TTFT")));
}

}  // namespace
}  // namespace triptych::cli
