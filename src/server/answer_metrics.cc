#include "server/answer_metrics.h"

#include "observe/metric_table.h"

namespace triptych {
namespace {

constexpr double kSeconds = 1e-3;  ///< of a millisecond

}  // namespace

std::string_view status_class(int http_status) {
  return kStatusClasses[http_status < 400 ? 0 : http_status < 500 ? 1 : 2];
}

RefusalMetrics::RefusalMetrics(MetricsRegistry& registry) {
  const auto reason = [&](std::string_view name) {
    return registry.counter(family_of(Metric::kRefusals), {name});
  };
  queue_full = reason("queue_full");
  memory = reason("memory");
  limits = reason("limits");
  unauthorised = reason("unauthorised");
  unavailable = reason("unavailable");
}

void RefusalMetrics::count(StatusCode code) {
  if (code == StatusCode::kOutOfRange) limits->add();
  if (code == StatusCode::kUnavailable) unavailable->add();
}

AnswerMetrics::AnswerMetrics(MetricsRegistry& registry, std::string_view model,
                             std::string_view route)
    : refusals_(registry) {
  const auto requests = [&](std::string_view code, FinishReason finish) {
    return registry.counter(family_of(Metric::kRequests),
                            {model, route, code, finish_reason_name(finish)});
  };
  for (const FinishReason finish : {FinishReason::kStop, FinishReason::kLength,
                                    FinishReason::kCancelled, FinishReason::kError}) {
    answered_[static_cast<size_t>(finish)] = requests(kStatusClasses[0], finish);
  }
  answered_[0] = answered_[static_cast<size_t>(FinishReason::kError)];  // an answer without an end
  refused_ = requests(kStatusClasses[1], FinishReason::kError);
  failed_ = requests(kStatusClasses[2], FinishReason::kError);
  prompt_tokens_ = registry.counter(family_of(Metric::kPromptTokens), {model});
  generation_tokens_ = registry.counter(family_of(Metric::kGenerationTokens), {model});
  const auto times = [&](Metric metric) { return registry.histogram(family_of(metric), {model}); };
  first_token_ = times(Metric::kTimeToFirstToken);
  per_token_ = times(Metric::kTimePerOutputToken);
  between_tokens_ = times(Metric::kInterTokenLatency);
  total_ = times(Metric::kRequestTime);
  queue_ = times(Metric::kQueueTime);
  media_decode_ = times(Metric::kMediaDecodeTime);
  encode_ = times(Metric::kEncodeTime);
  prefill_ = times(Metric::kPrefillTime);
  decode_ = times(Metric::kDecodeTime);
}

void AnswerMetrics::first_token(std::string_view request, double ms) {
  first_token_->observe(ms * kSeconds, request);
}

void AnswerMetrics::token(std::optional<double> gap_ms) {
  generation_tokens_->add();
  if (gap_ms) between_tokens_->observe(*gap_ms * kSeconds);
}

void AnswerMetrics::last_token(double ms_per_token) {
  per_token_->observe(ms_per_token * kSeconds);
}

void AnswerMetrics::ended(const openai::AnswerEnd& end) {
  prompt_tokens_->add(static_cast<uint64_t>(end.prompt_tokens));
  if (end.http_status >= 400) {
    (end.http_status < 500 ? refused_ : failed_)->add();
    return refusals_.count(end.error);
  }
  answered_[static_cast<size_t>(end.finish)]->add();
  // What was broken off would make the times look short.
  if (end.finish != FinishReason::kStop && end.finish != FinishReason::kLength) return;
  total_->observe(end.total_ms * kSeconds);
  if (end.timeline != nullptr) observe_stages(*end.timeline);
}

void AnswerMetrics::observe_stages(const Timeline& timeline) {
  const StageClock& clock = timeline.clock;
  queue_->observe((clock.ms(Stage::kQueue) + clock.ms(Stage::kWait)) * kSeconds);
  prefill_->observe(clock.ms(Stage::kPrefill) * kSeconds);
  decode_->observe(clock.ms(Stage::kDecode) * kSeconds);
  if (timeline.media_tokens == 0) return;
  media_decode_->observe(clock.ms(Stage::kMediaDecode) * kSeconds);
  encode_->observe(clock.ms(Stage::kEncode) * kSeconds);
}

}  // namespace triptych
