#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/multimodal_engine.h"

namespace triptych::openai {

/// What became of a request.
struct AnswerEnd {
  int http_status = 200;  ///< of an error inside a stream: the stream's, 200
  StatusCode error = StatusCode::kOk;
  FinishReason finish = FinishReason::kError;  ///< of several choices the worst
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  double total_ms = 0;                 ///< since the last byte of the request
  const Timeline* timeline = nullptr;  ///< of the first choice; null: it never came to the engine
};

/// Told what comes for the requests of a model; for whoever keeps figures. Thread-safe, and it must
/// not wait.
class AnswerObserver {
 public:
  virtual ~AnswerObserver() = default;
  /// The first token of a request, so long behind its last byte.
  virtual void first_token(std::string_view request, double ms) = 0;
  /// Any token, so long behind the one before it in its choice.
  virtual void token(std::optional<double> gap_ms) = 0;
  /// The last of a choice of at least two: the mean time between them.
  virtual void last_token(double ms_per_token) = 0;
  /// Also of a request that was refused, and had no tokens.
  virtual void ended(const AnswerEnd& end) = 0;
};

/// The times of one request's tokens, as they go out, for its observer.
class AnswerWatch {
 public:
  /// `observer` outlives the watch; `arrived_ms`: of steady_ms(), when the last byte had come.
  AnswerWatch(AnswerObserver& observer, std::string request, double arrived_ms, size_t n_choices)
      : observer_(&observer),
        request_(std::move(request)),
        arrived_ms_(arrived_ms),
        choices_(n_choices) {}

  /// Somebody else who is told of the end.
  void also_tell(std::function<void(const AnswerEnd&)> ended) { ended_ = std::move(ended); }

  /// Takes all events of the request, in order.
  void take(const SequenceEvent& event);
  void end(FinishReason finish, int http_status, StatusCode error);

 private:
  struct Choice {
    int64_t n_tokens = 0;
    double first_ms = 0;
    double last_ms = 0;
  };

  AnswerObserver* observer_;
  std::string request_;
  double arrived_ms_;
  std::vector<Choice> choices_;
  bool has_token_ = false;
  int64_t prompt_tokens_ = 0;
  std::optional<Timeline> timeline_;
  std::function<void(const AnswerEnd&)> ended_;
};

}  // namespace triptych::openai
