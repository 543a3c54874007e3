// Plays traces through the engine's scheduler on a machine that is a handful of numbers, for
// policies side by side. README.md in this folder says what the figures mean.

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "simulate.h"
#include "trace.h"

namespace triptych {
namespace {

struct Options {
  std::string trace;
  std::string write_trace;
  double hours = 2;
  double load = 0.9;  // of what static reservation sustains
  uint64_t seed = 1;
};

// A decoder of 8 billion parameters in 16 bits on a card of 24 GB and 1 TB/s: 15 ms to read the
// weights, 6 GiB of KV pages at 128 KiB a token. The scheduler starts from priors that are wrong by
// up to a factor of two, as they are on a new machine.
ModelMachine card() {
  ModelMachine machine;
  machine.total_pages = 3072;
  machine.media_bytes_cap = uint64_t{1} << 30;
  machine.truth = {.weights_ms = 15,
                   .row_ms = 0.08,
                   .row_overhead_ms = 0.005,
                   .pair_ms = 5e-6,
                   .kv_token_ms = 1.3e-4,
                   .encode_gflop_ms = 0.015,
                   .encode_block_ms = 0.03};
  return machine;
}

CostPriors priors() {
  CostPriors p = card().truth;
  p.weights_ms *= 0.8;
  p.row_ms *= 0.8;
  p.kv_token_ms *= 0.8;
  p.encode_gflop_ms *= 2;
  return p;
}

std::vector<Policy> policies() {
  SchedulerConfig first;
  first.order = QueueOrder::kArrival;
  first.admission = AdmissionRule::kPromptOnly;
  first.pause_below = 0;
  first.media_share = 1;
  first.headroom = 0.01;  // a watermark, as servers that admit by prompt have
  SchedulerConfig reserved = first;
  reserved.admission = AdmissionRule::kWholeLength;
  SchedulerConfig ordered;
  ordered.admission = AdmissionRule::kWholeLength;
  return {{"first come, prompt only", first},
          {"static reservation", reserved},
          {"static, our order", ordered},
          {"forecast (ours)", SchedulerConfig{}}};
}

void print_row(const Policy& policy, const Figures& f) {
  fmt::print(
      "{:<24} {:>8.2f} {:>8.2f} {:>9.2f} {:>9.2f} {:>9.1f} {:>7} {:>8.1f} {:>8.1f} {:>7.1f} "
      "{:>7.1f} {:>9.1f} {:>7.1f} {:>7.1f} {:>7.1f}\n",
      policy.name, f.goodput_per_s, f.finished_per_s, f.mean_latency_s, f.text_ttft_p99_s,
      f.longest_wait_s, f.starved, 100 * f.pool_use, 100 * f.memory_bound, 100 * f.fragmentation,
      100 * f.kv_waste, f.preempting_steps_per_h, f.tpot_misses_per_h, f.pushed_per_h,
      100 * f.cost_error_p95);
}

void print_head() {
  fmt::print(
      "{:<24} {:>8} {:>8} {:>9} {:>9} {:>9} {:>7} {:>8} {:>8} {:>7} {:>7} {:>9} {:>7} {:>7} "
      "{:>7}\n",
      "policy", "good/s", "done/s", "latency s", "ttft99 s", "longest s", "starved", "pool %",
      "full %", "frag %", "waste %", "preempt/h", "tpot/h", "push/h", "err95%");
}

// Figures of each policy on one trace; the last is ours.
Result<std::vector<Figures>> compare(const std::vector<TraceRequest>& trace) {
  std::vector<Figures> all;
  print_head();
  double simulated_s = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (const Policy& policy : policies()) {
    TRIPTYCH_ASSIGN_OR_RETURN(const Figures figures, simulate(trace, card(), priors(), policy));
    print_row(policy, figures);
    simulated_s += figures.simulated_s;
    all.push_back(figures);
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  fmt::print("{:.0f} simulated seconds a second\n\n", simulated_s / wall.count());
  return all;
}

Status run(const Options& options) {
  std::vector<TraceRequest> trace;
  if (!options.trace.empty()) {
    TRIPTYCH_ASSIGN_OR_RETURN(trace, read_trace(options.trace));
  } else {
    TraceRecipe recipe{.seconds = options.hours * 3600, .seed = options.seed};
    TraceRecipe sample = recipe;
    sample.seconds = 600;
    double limit[2] = {};
    for (const size_t i : {size_t{1}, policies().size() - 1}) {
      TRIPTYCH_ASSIGN_OR_RETURN(limit[i == 1 ? 0 : 1],
                                capacity(generate_trace(sample), card(), priors(), policies()[i]));
    }
    recipe.requests_per_s = options.load * limit[0];
    fmt::print("static reservation sustains {:.2f} requests/s, ours {:.2f}; the trace has {:.2f}\n",
               limit[0], limit[1], recipe.requests_per_s);
    trace = generate_trace(recipe);
  }
  if (!options.write_trace.empty()) return write_trace(options.write_trace, trace);

  TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<Figures> all, compare(trace));
  const Figures& fixed = all[1];
  const Figures& ours = all.back();
  fmt::print(
      "RESULT {{\"fragmentation\": {:.4f}, \"contention_per_hour\": {:.2f}, "
      "\"latency_cut\": {:.3f}, \"kv_waste\": {:.4f}, \"goodput_ratio\": {:.3f}, "
      "\"starved\": {}, \"starved_static\": {}, \"fragmentation_static\": {:.4f}}}\n",
      ours.fragmentation, ours.contention_per_h, 1 - ours.mean_latency_s / fixed.mean_latency_s,
      ours.kv_waste, ours.goodput_per_s / fixed.goodput_per_s, ours.starved, fixed.starved,
      fixed.fragmentation);
  return Status::ok();
}

Result<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (i + 1 == argc) return invalid_argument(flag + ": a value is missing");
    const std::string value = argv[++i];
    if (flag == "--trace") {
      options.trace = value;
    } else if (flag == "--write-trace") {
      options.write_trace = value;
    } else if (flag == "--hours") {
      options.hours = std::atof(value.c_str());
    } else if (flag == "--load") {
      options.load = std::atof(value.c_str());
    } else if (flag == "--seed") {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else {
      return invalid_argument(flag + ": there are --trace, --write-trace, --hours, --load, --seed");
    }
  }
  if (options.hours <= 0 || options.load <= 0) {
    return invalid_argument("--hours and --load must be above 0");
  }
  return options;
}

int run_main(int argc, char** argv) {
  const Result<Options> options = parse(argc, argv);
  const Status status = options.is_ok() ? run(*options) : options.status();
  if (!status.is_ok()) fmt::print(stderr, "engine_sim: {}\n", status.message());
  return exit_code(status.code());
}

}  // namespace
}  // namespace triptych

int main(int argc, char** argv) { return triptych::run_main(argc, argv); }
