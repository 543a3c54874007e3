#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/multimodal_engine.h"
#include "prep/preprocessor.h"
#include "weights/checkpoint.h"

namespace triptych::bench {

/// A model with preparation and engine, as the program runs it.
struct Rig {
  std::unique_ptr<Checkpoint> checkpoint;
  std::shared_ptr<const Preprocessor> prep;
  std::unique_ptr<TensorRegistry> registry;
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
  int64_t n_tokens = 0;
  Status error = Status::ok();

  double latency_ms() const { return end_ms - at_ms; }
  /// Mean time of a token behind the first.
  double tpot_ms() const {
    return n_tokens > 1 ? (end_ms - first_token_ms) / static_cast<double>(n_tokens - 1) : 0;
  }
};

/// Sends requests at their times (at most `most_open` at once) and waits for all answers.
std::vector<Answered> play(MultiModalEngine& engine, const std::vector<Arrival>& arrivals,
                           size_t most_open = SIZE_MAX);

/// Pictures of a folder, by name.
Result<std::vector<MediaItem>> load_pictures(const std::string& folder);
Request text_request(uint32_t seed, int64_t max_tokens);
Request picture_request(const MediaItem& picture, int64_t max_tokens);

double quantile(std::vector<double> values, double q);

}  // namespace triptych::bench
