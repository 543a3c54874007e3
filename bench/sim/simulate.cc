#include "simulate.h"

#include <algorithm>
#include <cmath>

#include "sched/kv_pages.h"

namespace triptych {
namespace {

constexpr double kMsPerHour = 3.6e6;
constexpr double kStarvedTargets = 10;

// Integrals over the time of all steps.
struct Integrals {
  double ms = 0;
  double tokens = 0;  // cached
  double slots = 0;   // of pages held
  double blocked_ms = 0;
  double blocked_idle = 0;  // share of the pool that nobody uses
};

void add_step(const Snapshot& snapshot, int64_t page_tokens, const StepReport& report,
              Integrals& sums) {
  int64_t tokens = 0;
  int64_t pages = 0;
  int64_t coming = 0;  // pages that prompts in prefill will fill
  for (const SequenceState& s : snapshot.running) {
    tokens += s.n_cached;
    pages += s.n_pages_held;
    coming += kv_pages_to_add(s, s.pending_rows(), page_tokens);
  }
  sums.ms += report.ms;
  sums.tokens += report.ms * static_cast<double>(tokens);
  sums.slots += report.ms * static_cast<double>(pages * page_tokens);
  if (report.plan.blocked == Shortage::kPages) {
    sums.blocked_ms += report.ms;
    sums.blocked_idle += report.ms * (1 - static_cast<double>(pages + coming) /
                                              static_cast<double>(snapshot.total_pages));
  }
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const auto at =
      std::min(values.size() - 1, static_cast<size_t>(q * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

void add_results(const ModelEngine& engine, Figures& figures) {
  const double hours = figures.simulated_s * 1000 / kMsPerHour;
  std::vector<double> text_ttft;
  int64_t good = 0;
  int64_t finished = 0;
  double miss_ms = -1;
  int64_t missing_steps = 0;
  double latency = 0;
  for (const RequestResult& r : engine.results()) {
    const ClassPolicy& policy = engine.config().policy(r.service_class);
    const double ttft = r.first_token_ms - r.arrival_ms;
    if (r.outcome != Outcome::kFinished || ttft > kStarvedTargets * policy.ttft_ms) {
      ++figures.starved;
    }
    if (r.outcome != Outcome::kFinished) continue;
    ++finished;
    latency += r.end_ms - r.arrival_ms;
    const bool slow = r.tpot_ms() > policy.tpot_ms;
    good += ttft <= policy.ttft_ms && !slow ? 1 : 0;
    if (slow && r.end_ms != miss_ms) ++missing_steps;  // results come in order of time
    if (slow) miss_ms = r.end_ms;
    figures.longest_wait_s = std::max(figures.longest_wait_s, ttft / 1000);
    if (r.service_class == ServiceClass::kInteractive && !r.has_media) text_ttft.push_back(ttft);
  }
  figures.goodput_per_s = static_cast<double>(good) / figures.simulated_s;
  figures.finished_per_s = static_cast<double>(finished) / figures.simulated_s;
  figures.mean_latency_s = latency / 1000 / static_cast<double>(std::max<int64_t>(finished, 1));
  figures.text_ttft_p99_s = quantile(text_ttft, 0.99) / 1000;
  figures.tpot_misses_per_h = static_cast<double>(missing_steps) / hours;
}

// Runs a trace to its end; `each` sees every step.
template <typename Each>
Status play(const std::vector<TraceRequest>& trace, ModelEngine& engine, const Each& each) {
  size_t next = 0;
  while (next < trace.size() || !engine.idle()) {
    if (engine.idle()) engine.wait_until(trace[next].arrival_ms);
    while (next < trace.size() && trace[next].arrival_ms <= engine.snapshot().now_ms) {
      engine.submit(trace[next++]);
    }
    TRIPTYCH_ASSIGN_OR_RETURN(const StepReport report, engine.step());
    if (report.plan.does_nothing() && !engine.idle()) {
      return internal_error("the scheduler does nothing while requests wait");
    }
    each(report);
  }
  return Status::ok();
}

}  // namespace

Result<Figures> simulate(const std::vector<TraceRequest>& trace, const ModelMachine& machine,
                         const CostPriors& priors, const Policy& policy) {
  ModelEngine engine(machine, policy.config, priors, 1);
  Figures figures;
  Integrals sums;
  int64_t preempting = 0;
  TRIPTYCH_RETURN_IF_ERROR(play(trace, engine, [&](const StepReport& report) {
    ++figures.n_steps;
    if (report.plan.preempt.size() > report.plan.n_pushed_out) ++preempting;
    figures.pushed_per_h += static_cast<double>(report.plan.n_pushed_out);
    add_step(engine.snapshot(), policy.config.page_tokens, report, sums);
  }));
  figures.simulated_s = engine.snapshot().now_ms / 1000;
  add_results(engine, figures);
  const double hours = figures.simulated_s * 1000 / kMsPerHour;
  figures.preempting_steps_per_h = static_cast<double>(preempting) / hours;
  figures.pushed_per_h /= hours;
  figures.contention_per_h = figures.preempting_steps_per_h + figures.tpot_misses_per_h;
  figures.fragmentation = sums.blocked_ms > 0 ? sums.blocked_idle / sums.blocked_ms : 0;
  figures.memory_bound = sums.blocked_ms / (figures.simulated_s * 1000);
  figures.kv_waste = sums.slots > 0 ? 1 - sums.tokens / sums.slots : 0;
  figures.pool_use =
      sums.tokens /
      (sums.ms * static_cast<double>(machine.total_pages * policy.config.page_tokens));
  figures.cost_error_p95 = engine.predictors().cost.p95_relative_error();
  return figures;
}

Result<double> capacity(std::vector<TraceRequest> trace, const ModelMachine& machine,
                        const CostPriors& priors, const Policy& policy) {
  for (TraceRequest& request : trace) request.arrival_ms = 0;
  ModelEngine engine(machine, policy.config, priors, 1);
  TRIPTYCH_RETURN_IF_ERROR(play(trace, engine, [](const StepReport&) {}));
  const size_t counted = engine.results().size() * 9 / 10;
  if (counted == 0) return failed_precondition("the trace is empty");
  return static_cast<double>(counted) / (engine.results()[counted - 1].end_ms / 1000);
}

}  // namespace triptych
