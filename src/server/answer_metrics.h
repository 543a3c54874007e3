#pragma once

#include <array>
#include <string_view>

#include "observe/metrics.h"
#include "server/openai/answer_watch.h"

namespace triptych {

/// "2xx", "4xx" or "5xx": what a status is counted under.
std::string_view status_class(int http_status);
inline constexpr std::array<std::string_view, 3> kStatusClasses = {"2xx", "4xx", "5xx"};

/// Requests that were refused for a reason that their status tells.
struct RefusalMetrics {
  explicit RefusalMetrics(MetricsRegistry& registry);
  void count(StatusCode code);

  Counter* queue_full;  ///< kept by the engines
  Counter* memory;      ///< kept by the engines and the server
  Counter* limits;
  Counter* unauthorised;
  Counter* unavailable;
};

/// Counts the requests of one model and route. The registry outlives it.
class AnswerMetrics final : public openai::AnswerObserver {
 public:
  AnswerMetrics(MetricsRegistry& registry, std::string_view model, std::string_view route);

  void first_token(std::string_view request, double ms) override;
  void token(std::optional<double> gap_ms) override;
  void last_token(double ms_per_token) override;
  void ended(const openai::AnswerEnd& end) override;

 private:
  void observe_stages(const Timeline& timeline);

  RefusalMetrics refusals_;
  std::array<Counter*, 5> answered_{};  ///< 2xx, by FinishReason
  Counter* refused_;                    ///< 4xx
  Counter* failed_;                     ///< 5xx
  Counter* prompt_tokens_;
  Counter* generation_tokens_;
  Histogram* first_token_;
  Histogram* per_token_;
  Histogram* between_tokens_;
  Histogram* total_;
  Histogram* queue_;
  Histogram* media_decode_;
  Histogram* encode_;
  Histogram* prefill_;
  Histogram* decode_;
};

}  // namespace triptych
