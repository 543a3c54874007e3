#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/multimodal_engine.h"
#include "prep/media_preparer.h"
#include "weights/checkpoint.h"

namespace triptych::bench {

/// A preparer that counts the requests whose preparation it has begun.
class CountingPreparer final : public RequestPreparer {
 public:
  explicit CountingPreparer(std::unique_ptr<const RequestPreparer> inner)
      : inner_(std::move(inner)) {}

  Result<RequestCost> cost(const Request& request) const override { return inner_->cost(request); }
  Result<PreparedRequest> prepare(const Request& request,
                                  const PrepContext& context) const override {
    ++n_begun_;
    return inner_->prepare(request, context);
  }
  int64_t n_begun() const { return n_begun_; }

 private:
  std::unique_ptr<const RequestPreparer> inner_;
  mutable std::atomic<int64_t> n_begun_ = 0;
};

/// A model with preparation and engine, as the program runs it.
struct Rig {
  std::unique_ptr<Checkpoint> checkpoint;
  std::shared_ptr<const Preprocessor> prep;
  std::shared_ptr<const CountingPreparer> preparer;
  MemoryPlan plan;
  const Engine* inner = nullptr;  ///< `engine`'s own: to look at while that is drained
  std::unique_ptr<MultiModalEngine> engine;

  static Result<Rig> start(const std::string& model, const EngineOptions& options);
};

/// The same without threads around it: for runs that step by hand.
Result<std::unique_ptr<Engine>> load_engine(const std::string& model, EngineOptions options);

/// A request that arrives at a time, and what became of it. Times in ms from the start of the run.
struct Arrival {
  double at_ms = 0;
  bool has_picture = false;
  Request request;
};
struct Answered {
  bool has_picture = false;
  double at_ms = 0;
  double first_token_ms = 0;
  double end_ms = 0;
  std::vector<int32_t> tokens;
  Status error = Status::ok();

  int64_t n_tokens() const { return static_cast<int64_t>(tokens.size()); }
  double latency_ms() const { return end_ms - at_ms; }
  double ttft_ms() const { return first_token_ms - at_ms; }
  /// Mean time of a token behind the first.
  double tpot_ms() const {
    return n_tokens() > 1 ? (end_ms - first_token_ms) / static_cast<double>(n_tokens() - 1) : 0;
  }
};

/// Sends requests at their times (at most `most_open` at once) and waits for all answers.
std::vector<Answered> play(MultiModalEngine& engine, const std::vector<Arrival>& arrivals,
                           size_t most_open = SIZE_MAX);

/// Pictures of a folder, by name.
Result<std::vector<MediaItem>> load_pictures(const std::string& folder);
Request text_request(uint32_t seed, int64_t max_tokens);
Request picture_request(const MediaItem& picture, int64_t max_tokens);

/// When the last of them ended.
double end_ms(const std::vector<Answered>& answers);
double quantile(std::vector<double> values, double q);
/// Physical memory of this process now.
double resident_mib();
/// What main() returns: says what went wrong, if anything did.
int exit_code(const Status& status);

}  // namespace triptych::bench
