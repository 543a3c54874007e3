#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "sched/model_engine.h"

namespace triptych {

/// What a generated trace is like. Sizes are lognormal; bench/sim/README.md gives the figures.
struct TraceRecipe {
  double requests_per_s = 4;  ///< mean over calm and bursts
  double seconds = 3600;
  double burst_factor = 4;  ///< rate in a burst over the calm rate; 1: plain Poisson
  double burst_s = 5;       ///< mean length of a burst
  double calm_s = 55;
  uint64_t seed = 1;
};

/// Text, pictures, sound and video in a mix, of three classes and eight tenants. By arrival.
std::vector<TraceRequest> generate_trace(const TraceRecipe& recipe);

/// A request a line: {"arrival_ms", "class", "tenant", "prompt_tokens", "max_new", "answer_tokens",
/// "media": [{"position", "length", "item", "blocks", "block_gflop", "bytes"}]}. kInvalidArgument
/// naming file, line and field.
Result<std::vector<TraceRequest>> read_trace(const std::string& path);
Status write_trace(const std::string& path, const std::vector<TraceRequest>& trace);

}  // namespace triptych
