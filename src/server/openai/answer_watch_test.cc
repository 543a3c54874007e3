#include "server/openai/answer_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"

namespace triptych::openai {
namespace {

struct Seen final : AnswerObserver {
  void first_token(std::string_view request, double ms) override {
    requests.emplace_back(request);
    first_ms = ms;
  }
  void token(std::optional<double> gap_ms) override {
    ++n_tokens;
    if (gap_ms) gaps.push_back(*gap_ms);
  }
  void last_token(double ms_per_token) override { means.push_back(ms_per_token); }
  void ended(const AnswerEnd& answer) override {
    end = answer;
    if (answer.timeline != nullptr) cached_tokens = answer.timeline->cached_tokens;
  }

  std::vector<std::string> requests;
  double first_ms = 0;
  int n_tokens = 0;
  std::vector<double> gaps;
  std::vector<double> means;
  AnswerEnd end;
  int64_t cached_tokens = -1;
};

SequenceEvent token(uint32_t choice, FinishReason finish = FinishReason::kNone) {
  SequenceEvent out{.token = {.token = 1, .finish = finish, .error = {}, .choice = choice}};
  out.usage.prompt_tokens = 7;
  if (finish != FinishReason::kNone) {
    out.timeline.emplace();
    out.timeline->cached_tokens = choice;
  }
  return out;
}

TEST(AnswerWatch, TimesEachChoiceForItself) {
  Seen seen;
  AnswerWatch watch(seen, "chatcmpl-1", steady_ms() - 50, 2);
  watch.take(token(0));
  watch.take(token(1));
  watch.take(token(0));
  watch.take(token(0, FinishReason::kLength));
  watch.take(token(1, FinishReason::kLength));
  watch.end(FinishReason::kLength, 200, StatusCode::kOk);
  EXPECT_THAT(seen.requests, testing::ElementsAre("chatcmpl-1")) << "once a request";
  EXPECT_GE(seen.first_ms, 50);
  EXPECT_EQ(seen.n_tokens, 5);
  ASSERT_EQ(seen.gaps.size(), 3u) << "none of a choice's first";
  ASSERT_EQ(seen.means.size(), 2u);
  EXPECT_NEAR(seen.means[0], (seen.gaps[0] + seen.gaps[1]) / 2, 1e-6);
  EXPECT_NEAR(seen.means[1], seen.gaps[2], 1e-6);
  EXPECT_EQ(seen.end.prompt_tokens, 7);
  EXPECT_EQ(seen.end.finish, FinishReason::kLength);
  EXPECT_GE(seen.end.total_ms, seen.first_ms);
  EXPECT_EQ(seen.cached_tokens, 0) << "of the first choice";
}

TEST(AnswerWatch, AnAnswerWithoutTokensHasNoTimesOfThem) {
  Seen seen;
  AnswerWatch watch(seen, "chatcmpl-1", steady_ms(), 1);
  SequenceEvent last = token(0, FinishReason::kStop);
  last.token.token = -1;
  watch.take(last);
  watch.end(FinishReason::kStop, 200, StatusCode::kOk);
  EXPECT_TRUE(seen.requests.empty());
  EXPECT_EQ(seen.n_tokens, 0);
  EXPECT_TRUE(seen.means.empty());
  EXPECT_EQ(seen.end.prompt_tokens, 7);
}

}  // namespace
}  // namespace triptych::openai
