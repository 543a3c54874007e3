#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "sched/plan.h"

namespace triptych {

/// A request of a trace: what a scheduler is told, and how it really goes on.
struct TraceRequest {
  double arrival_ms = 0;
  ServiceClass service_class = ServiceClass::kStandard;
  uint32_t tenant = 0;
  int64_t n_prompt = 0;  ///< media rows included
  int64_t max_new = 0;
  int64_t n_answer = 0;  ///< tokens it will draw, 1 to max_new
  double expires_ms = kNever;
  std::vector<MediaState> media;
};

enum class Outcome : uint8_t { kFinished, kEnded, kCancelled };

struct RequestResult {
  uint64_t id = 0;
  Outcome outcome = Outcome::kFinished;
  ServiceClass service_class = ServiceClass::kStandard;
  double arrival_ms = 0;
  double first_token_ms = kNotYet;
  double end_ms = 0;
  int64_t n_drawn = 0;
  bool has_media = false;
  int32_t n_preempted = 0;

  /// Mean time of the tokens behind the first; 0 when there are none.
  double tpot_ms() const {
    return n_drawn > 1 ? (end_ms - first_token_ms) / static_cast<double>(n_drawn - 1) : 0;
  }
};

/// The machine that is played: memory, and a roofline that the cost model does not know.
struct ModelMachine {
  int64_t total_pages = 1024;
  uint64_t media_bytes_cap = uint64_t{1} << 30;
  CostPriors truth;          ///< real costs; text and media keys cost the same to read
  double noise = 0.03;       ///< standard deviation of the logarithm of a step's time
  double evictable = 0;      ///< share of pages that stay in a prefix cache when they come free
  double lost_features = 0;  ///< chance that a preempted item has to be encoded again
};

struct StepReport {
  StepPlan plan;
  double ms = 0;
};

/// Carries out the scheduler's plans on sequences that only count: the engine of the property tests
/// and of bench/sim. Every plan is checked against the rules of sched/plan.h first; a breach is a
/// kInternal that names it. Time is a number that the steps advance.
class ModelEngine {
 public:
  ModelEngine(const ModelMachine& machine, const SchedulerConfig& config, const CostPriors& priors,
              uint64_t seed);

  uint64_t submit(const TraceRequest& request);
  void cancel(uint64_t id);
  /// Lets time pass to `ms`.
  void wait_until(double ms);
  bool idle() const { return snapshot_.waiting.empty() && snapshot_.running.empty(); }

  Result<StepReport> step();

  const Snapshot& snapshot() const { return snapshot_; }
  const Predictors& predictors() const { return predictors_; }
  const SchedulerConfig& config() const { return config_; }
  /// Requests that ended, in order.
  const std::vector<RequestResult>& results() const { return results_; }

 private:
  struct Place {
    int64_t n_answer = 0;
    uint64_t media_bytes = 0;  // reserved
    bool running = false;
    bool gone = false;
    size_t index = 0;
  };

  SequenceState* running(uint64_t id);
  SequenceState take_out(uint64_t id);
  void put(SequenceState sequence, bool running);
  void free_pages(SequenceState& sequence);
  void finish(uint64_t id, Outcome outcome);
  void reserve_media(const SequenceState& sequence);

  Status start(const StepPlan& plan);
  Status preempt(uint64_t id);
  Status admit(uint64_t id);
  Status take_pages(const RowSlice& slice);
  Status encode(const EncodeSlice& slice);
  Status check_rows(const StepPlan& plan);
  Status check_times(const StepPlan& plan);
  Status forward(const StepPlan& plan);
  double true_rows_ms(const StepShape& shape) const;
  double noisy(double ms);

  ModelMachine machine_;
  SchedulerConfig config_;
  Predictors predictors_;
  Snapshot snapshot_;
  std::mt19937_64 random_;
  std::vector<Place> places_;                                  // by id - 1
  std::unordered_map<uint64_t, std::vector<uint64_t>> users_;  // of an item
  std::vector<RequestResult> results_;
};

}  // namespace triptych
