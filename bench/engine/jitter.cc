// How long a sequence whose pictures are encoded waits for the decoder's first step with them, with
// text and pictures mixed at 70 % of capacity: the engine's own gauge over the latest 1024 of them.
#include <fmt/format.h>

#include <cstdio>

#include "load.h"

namespace triptych::bench {
namespace {

constexpr double kLoad = 0.7;
constexpr double kSeconds = 60;
constexpr int64_t kSequences = 32;

Status run(const std::string& model) {
  EngineOptions options;
  options.limits.max_sequences = kSequences;
  double rate = 0;
  MixedLoad load(1);
  {
    TRIPTYCH_ASSIGN_OR_RETURN(const Rig rig, Rig::start(model, options));
    rate = kLoad * load.capacity(*rig.engine, kSequences);
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const Rig rig, Rig::start(model, options));
  for (const Answered& answer : play(*rig.engine, load.arrivals(rate, kSeconds))) {
    TRIPTYCH_RETURN_IF_ERROR(answer.error);
  }
  const SampleSummary gauge = rig.engine->snapshot().encode_to_decode_ms;
  fmt::print(
      "{:.1f} requests/s, 30 % with a picture, {:.0f} s; encoder done to decode start of {} "
      "pictures: P50 {:.2f} ms, P99 {:.2f} ms, jitter (P99 - P50) {:.2f} ms\n",
      rate, kSeconds, gauge.n_seen, gauge.p50, gauge.p99, gauge.jitter());
  fmt::print("RESULT {{\"p99_ms\": {:.3f}}}\n", gauge.p99);
  return Status::ok();
}

}  // namespace
}  // namespace triptych::bench

int main(int argc, char** argv) {
  return triptych::bench::exit_code(triptych::bench::run(argc > 1 ? argv[1] : "models/demo"));
}
