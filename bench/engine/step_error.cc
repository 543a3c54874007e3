// How well the scheduler's cost model predicts the real engine's steps: mixed text and pictures at
// 70 % of capacity, and the error that 95 % of the latest 512 predictions kept to, once a second.
// Beside it what no model can predict: how far the same reading of memory, as long as a decode step
// of the demo model and with nothing else to do, strays on this machine from the median of the
// seven before it.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <thread>

#include "backends/cpu/ceilings.h"
#include "base/thread_pool.h"
#include "load.h"

namespace triptych::bench {
namespace {

constexpr double kLoad = 0.7;
constexpr double kSeconds = 40;
constexpr double kWarmSeconds = 10;
constexpr int64_t kSequences = 32;

/// P95 of the relative error, as told above.
Result<double> machine_noise() {
  constexpr int64_t kMegabytes = 12;  // the demo model's decoder
  constexpr int kPasses = 4000;
  constexpr int kBefore = 7;
  ThreadPool pool(2);
  TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<double> found,
                            measure_reads(pool, kMegabytes, kPasses));
  std::vector<double> errors;
  for (auto now = found.begin() + kBefore; now != found.end(); ++now) {
    errors.push_back(std::fabs(*now / quantile({now - kBefore, now}, .5) - 1));
  }
  return quantile(errors, .95);
}

Status run(const std::string& model) {
  TRIPTYCH_ASSIGN_OR_RETURN(const double noise, machine_noise());
  EngineOptions options;
  options.limits.max_sequences = kSequences;
  TRIPTYCH_ASSIGN_OR_RETURN(const Rig rig, Rig::start(model, options));
  MixedLoad load(1);
  const double rate = kLoad * load.capacity(*rig.engine, kSequences);
  const std::vector<Arrival> arrivals = load.arrivals(rate, kSeconds);
  std::vector<double> errors;
  std::thread watch([&] {
    std::this_thread::sleep_for(std::chrono::duration<double>(kWarmSeconds));
    for (int i = 0; i < static_cast<int>(kSeconds - kWarmSeconds); ++i) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      errors.push_back(rig.engine->snapshot().step_error_p95);
    }
  });
  const std::vector<Answered> answers = play(*rig.engine, arrivals);
  watch.join();
  for (const Answered& answer : answers) TRIPTYCH_RETURN_IF_ERROR(answer.error);
  fmt::print(
      "{:.1f} requests/s, 30 % with a picture, {:.0f} s: P95 of the step time error, read "
      "once a second: least {:.3f}, median {:.3f}, most {:.3f}; noise of the machine alone "
      "{:.3f}\n",
      rate, kSeconds, quantile(errors, 0), quantile(errors, .5), quantile(errors, 1), noise);
  fmt::print("RESULT {{\"step_error_p95\": {:.4f}, \"machine_noise_p95\": {:.4f}}}\n",
             quantile(errors, .5), noise);
  return Status::ok();
}

}  // namespace
}  // namespace triptych::bench

int main(int argc, char** argv) {
  return triptych::bench::exit_code(triptych::bench::run(argc > 1 ? argv[1] : "models/demo"));
}
