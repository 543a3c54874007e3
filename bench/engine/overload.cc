// Three times as many requests as the machine can answer, 30 % of them with a picture that nobody
// has shown before, for 60 s. How many a second still get their first token within the target of
// their class, against the best of all lower rates? And does memory stay flat?
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "load.h"

namespace triptych::bench {
namespace {

constexpr int64_t kSequences = 32;
constexpr double kLowerRates[] = {0.6, 0.8, 1.0, 1.25, 1.5, 2.0};
constexpr double kLowerSeconds = 20;
constexpr double kOverload = 3;
constexpr double kOverloadSeconds = 60;
const double kTargetMs = SchedulerConfig().policy(ServiceClass::kStandard).ttft_ms;

EngineOptions options() {
  EngineOptions out;
  out.limits.max_sequences = kSequences;
  out.limits.kv_cap_bytes = uint64_t{192} << 20;
  out.limits.media.encoder_cache_bytes = uint64_t{32} << 20;
  // Beyond capacity a request that cannot make its target is given up, so that others make theirs.
  // What is left of the target is a margin for those that the engine is at work on.
  for (ClassPolicy& policy : out.config.scheduler.classes) policy.shed_factor = 0.8;
  return out;
}

struct Figures {
  double goodput = 0;  ///< requests a second whose first token met the target
  double ttft_p99_ms = 0;
  double refused = 0;  ///< share that got no token
  double growth = 0;   ///< of resident memory from a third of the run to its end, relative
};

Figures measure(MultiModalEngine& engine, const std::vector<Arrival>& arrivals, double seconds) {
  double early_mib = 0;
  double late_mib = 0;
  std::thread watch([&] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds / 3));
    early_mib = resident_mib();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds * 2 / 3));
    late_mib = resident_mib();
  });
  const std::vector<Answered> answers = play(engine, arrivals);
  watch.join();
  std::vector<double> ttft;
  double n_good = 0;
  for (const Answered& answer : answers) {
    if (answer.tokens.empty()) continue;
    ttft.push_back(answer.ttft_ms());
    n_good += answer.ttft_ms() <= kTargetMs && answer.error.is_ok();
  }
  const auto n = static_cast<double>(answers.size());
  return {.goodput = n_good / seconds,
          .ttft_p99_ms = quantile(ttft, .99),
          .refused = (n - static_cast<double>(ttft.size())) / n,
          .growth = late_mib / early_mib - 1};
}

Status run(const std::string& model) {
  TRIPTYCH_ASSIGN_OR_RETURN(const Rig rig, Rig::start(model, options()));
  MixedLoad source(1);
  const double most = source.capacity(*rig.engine, kSequences);
  fmt::print("capacity {:.1f} requests/s, 30 % with a picture\n", most);
  fmt::print("{:<10}{:>12}{:>18}{:>14}{:>12}{:>14}\n", "of it", "offered/s", "within target/s",
             "TTFT P99 ms", "refused %", "memory +%");
  const auto at = [&](double load, double seconds) {
    const std::vector<Arrival> arrivals = source.arrivals(load * most, seconds);
    const Figures f = measure(*rig.engine, arrivals, seconds);
    fmt::print("{:<10.1f}{:>12.1f}{:>18.1f}{:>14.0f}{:>12.1f}{:>14.2f}\n", load, load * most,
               f.goodput, f.ttft_p99_ms, 100 * f.refused, 100 * f.growth);
    std::fflush(stdout);
    return f;
  };
  double peak = 0;
  for (const double load : kLowerRates) peak = std::max(peak, at(load, kLowerSeconds).goodput);
  const Figures over = at(kOverload, kOverloadSeconds);
  fmt::print(
      "RESULT {{\"goodput_fraction\": {:.4f}, \"ttft_p99_over_target\": {:.4f}, "
      "\"rss_growth\": {:.4f}}}\n",
      over.goodput / peak, over.ttft_p99_ms / kTargetMs, over.growth);
  return Status::ok();
}

}  // namespace
}  // namespace triptych::bench

int main(int argc, char** argv) {
  return triptych::bench::exit_code(triptych::bench::run(argc > 1 ? argv[1] : "models/demo"));
}
