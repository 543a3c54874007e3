#include "server/openai/answer_watch.h"

#include "base/clock.h"

namespace triptych::openai {

void AnswerWatch::take(const SequenceEvent& event) {
  const TokenEvent& token = event.token;
  Choice& choice = choices_[token.choice];
  if (token.token >= 0) {
    const double now_ms = steady_ms();
    if (!has_token_) observer_->first_token(request_, now_ms - arrived_ms_);
    has_token_ = true;
    observer_->token(choice.n_tokens > 0 ? std::optional(now_ms - choice.last_ms) : std::nullopt);
    if (choice.n_tokens++ == 0) choice.first_ms = now_ms;
    choice.last_ms = now_ms;
  }
  if (token.finish == FinishReason::kNone) return;
  if (choice.n_tokens > 1) {
    observer_->last_token((choice.last_ms - choice.first_ms) /
                          static_cast<double>(choice.n_tokens - 1));
  }
  prompt_tokens_ = event.usage.prompt_tokens;
  if (token.choice == 0) timeline_ = event.timeline;
}

void AnswerWatch::end(FinishReason finish, int http_status, StatusCode error) {
  AnswerEnd out{.http_status = http_status,
                .error = error,
                .finish = finish,
                .prompt_tokens = prompt_tokens_,
                .total_ms = steady_ms() - arrived_ms_,
                .timeline = timeline_ ? &*timeline_ : nullptr};
  for (const Choice& choice : choices_) out.completion_tokens += choice.n_tokens;
  observer_->ended(out);
  if (ended_) ended_(out);
}

}  // namespace triptych::openai
