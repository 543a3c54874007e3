#pragma once

#include <string>
#include <vector>

#include "sched/model_engine.h"

namespace triptych {

/// A scheduler to compare: the code is one, the configuration differs.
struct Policy {
  std::string name;
  SchedulerConfig config;
};

/// What a policy did with a trace. README.md in this folder defines each figure.
struct Figures {
  double simulated_s = 0;
  double goodput_per_s = 0;  ///< finished requests within TTFT and TPOT targets
  double finished_per_s = 0;
  double mean_latency_s = 0;          ///< arrival to last token
  double text_ttft_p99_s = 0;         ///< interactive requests without media
  double longest_wait_s = 0;          ///< arrival to first token
  int64_t starved = 0;                ///< first token after ten TTFT targets, or never finished
  double fragmentation = 0;           ///< of the pool, idle while pages keep a request out
  double kv_waste = 0;                ///< of the pages held
  double memory_bound = 0;            ///< share of time in which pages keep a request out
  double pool_use = 0;                ///< tokens of the pool's capacity, mean over time
  double preempting_steps_per_h = 0;  ///< because pages ran out
  double tpot_misses_per_h = 0;
  double contention_per_h = 0;  ///< both together
  double pushed_per_h = 0;      ///< requests pushed out for a higher class, not part of it
  double cost_error_p95 = 0;    ///< of the cost model against the played machine
  int64_t n_steps = 0;
};

/// Plays the whole trace. kInternal when a plan breaks a rule.
Result<Figures> simulate(const std::vector<TraceRequest>& trace, const ModelMachine& machine,
                         const CostPriors& priors, const Policy& policy);

/// Requests a second that a policy finishes when all of the trace waits from the start; the first
/// nine tenths count, as the last ones run alone.
Result<double> capacity(std::vector<TraceRequest> trace, const ModelMachine& machine,
                        const CostPriors& priors, const Policy& policy);

}  // namespace triptych
