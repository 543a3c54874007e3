// 200 requests of 28 distinct pictures each come at once; all memory is capped at 512 MiB. Whoever
// is refused comes back 200 ms later until he is taken. Does resident memory keep to the cap, are
// refusals quick and made before any picture is decoded, and does everybody get the answer that he
// gets alone?
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <list>
#include <thread>

#include "base/clock.h"
#include "pictures.h"
#include "rig.h"

namespace triptych::bench {
namespace {

constexpr uint32_t kRequests = 200;
constexpr uint32_t kPictures = 28;
constexpr int64_t kAnswer = 16;
constexpr size_t kFronts = 4;
constexpr uint64_t kCapMib = 512;
constexpr std::chrono::milliseconds kRetry{200};

EngineOptions options_within_cap() {
  EngineOptions out;
  out.limits.max_sequences = 16;
  out.limits.memory_cap_bytes = kCapMib << 20;
  return out;
}

Request make_request(uint32_t number) {
  Request out;
  RequestMessage message{"user", {}};
  for (uint32_t i = 0; i < kPictures; ++i) {
    message.parts.push_back({{}, i});
    out.media.push_back(synthetic_picture(number * kPictures + i, 320, 240));
  }
  message.parts.push_back({"Describe the pictures.", std::nullopt});
  out.messages.push_back(std::move(message));
  out.sampling.max_tokens = kAnswer;
  out.sampling.ignore_eos = true;
  return out;
}

struct Outcome {
  std::shared_ptr<TokenStream> stream;
  std::vector<int32_t> tokens;
  Status error = Status::ok();
};

/// One front thread: sends its requests, again when refused, then reads all answers. Returns how
/// long each refusal took, in ms; `error` of an outcome is whatever else went wrong.
std::vector<double> send(MultiModalEngine& engine, std::span<const Request> requests,
                         std::span<Outcome> out) {
  std::vector<double> refusals;
  std::list<size_t> left;
  for (size_t i = 0; i < requests.size(); ++i) left.push_back(i);
  while (!left.empty()) {
    for (auto it = left.begin(); it != left.end();) {
      const double start = steady_ms();
      auto stream = engine.submit(requests[*it]);
      if (stream.status().code() == StatusCode::kResourceExhausted) {
        refusals.push_back(steady_ms() - start);
        ++it;
        continue;
      }
      if (stream.is_ok()) {
        out[*it].stream = std::move(*stream);
      } else {
        out[*it].error = stream.status();
      }
      it = left.erase(it);
    }
    if (!left.empty()) std::this_thread::sleep_for(kRetry);
  }
  for (Outcome& outcome : out) {
    while (outcome.stream != nullptr) {
      const auto event = outcome.stream->next(std::chrono::hours(1));
      if (event->token.token >= 0) outcome.tokens.push_back(event->token.token);
      if (!event->token.error.is_ok()) outcome.error = event->token.error;
      if (event->ends_request) break;
    }
  }
  return refusals;
}

struct Burst {
  std::vector<Outcome> outcomes;
  std::vector<double> refusals_ms;
  int64_t n_begun = 0;
  double weights_mib = 0;
  double peak_mib = 0;  ///< above weights and the pictures' files
  double seconds = 0;
};

Result<Burst> burst(const std::string& model, const std::vector<Request>& requests) {
  TRIPTYCH_ASSIGN_OR_RETURN(const Rig rig, Rig::start(model, options_within_cap()));
  const MemoryPlan& plan = rig.plan;
  fmt::print(
      "MiB: weights {}, KV {}, workspace {}, encoder cache {}, pixel cache {}, media in work {}, "
      "requests {}: {} at most\n",
      plan.weight_bytes >> 20, plan.kv_bytes >> 20, plan.workspace_bytes >> 20,
      plan.media.encoder_cache_bytes >> 20, plan.media.pixel_cache_bytes >> 20,
      plan.media.in_work_bytes >> 20, plan.media.request_bytes >> 20, plan.at_most() >> 20);
  Burst out;
  out.weights_mib = static_cast<double>(plan.weight_bytes) / (1 << 20);
  out.outcomes.resize(requests.size());
  const double baseline = resident_mib();
  std::atomic<bool> done = false;
  std::thread watch([&] {
    while (!done) {
      out.peak_mib = std::max(out.peak_mib, resident_mib() - baseline);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  const double start = steady_ms();
  std::vector<std::vector<double>> refusals(kFronts);
  std::vector<std::thread> fronts;
  const size_t share = requests.size() / kFronts;
  for (size_t i = 0; i < kFronts; ++i) {
    fronts.emplace_back([&, i] {
      refusals[i] = send(*rig.engine, std::span(requests).subspan(i * share, share),
                         std::span(out.outcomes).subspan(i * share, share));
    });
  }
  for (std::thread& front : fronts) front.join();
  out.seconds = (steady_ms() - start) / 1e3;
  done = true;
  watch.join();
  for (const auto& part : refusals) {
    out.refusals_ms.insert(out.refusals_ms.end(), part.begin(), part.end());
  }
  out.n_begun = rig.preparer->n_begun();
  return out;
}

/// Each request alone, on an engine without caches.
Result<std::vector<Answered>> alone(const std::string& model,
                                    const std::vector<Request>& requests) {
  EngineOptions options = options_within_cap();
  options.turn_caches_off();
  TRIPTYCH_ASSIGN_OR_RETURN(const Rig rig, Rig::start(model, options));
  std::vector<Arrival> arrivals;
  for (const Request& request : requests) arrivals.push_back({.request = request});
  return play(*rig.engine, arrivals, 1);
}

Status run(const std::string& model) {
  std::vector<Request> requests;
  for (uint32_t i = 0; i < kRequests; ++i) requests.push_back(make_request(i));
  TRIPTYCH_ASSIGN_OR_RETURN(const Burst got, burst(model, requests));
  TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<Answered> expected, alone(model, requests));
  int64_t n_correct = 0;
  int64_t n_admitted = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const Outcome& outcome = got.outcomes[i];
    if (outcome.stream == nullptr) {
      fmt::print("request {}: {}\n", i, outcome.error.message());
      continue;
    }
    ++n_admitted;
    if (!outcome.error.is_ok()) fmt::print("request {}: {}\n", i, outcome.error.message());
    n_correct += outcome.error.is_ok() && expected[i].error.is_ok() &&
                 outcome.tokens == expected[i].tokens && outcome.tokens.size() == kAnswer;
  }
  fmt::print("{} of {} requests taken in the end, {} correct, in {:.1f} s; {} refusals\n",
             n_admitted, requests.size(), n_correct, got.seconds, got.refusals_ms.size());
  fmt::print(
      "refusals: P50 {:.2f} ms, P99 {:.2f} ms, longest {:.2f} ms; {} requests reached "
      "preparation\n",
      quantile(got.refusals_ms, .5), quantile(got.refusals_ms, .99), quantile(got.refusals_ms, 1),
      got.n_begun);
  fmt::print("resident memory at most {:.0f} MiB, weights among them\n",
             got.weights_mib + got.peak_mib);
  if (got.n_begun != n_admitted) return internal_error("a refused request was prepared");
  fmt::print(
      "RESULT {{\"rss_over_cap_mib\": {:.1f}, \"refusal_p99_ms\": {:.3f}, "
      "\"admitted_correct\": {:.4f}}}\n",
      got.weights_mib + got.peak_mib - static_cast<double>(kCapMib), quantile(got.refusals_ms, .99),
      static_cast<double>(n_correct) / static_cast<double>(n_admitted));
  return Status::ok();
}

}  // namespace
}  // namespace triptych::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: engine_burst_bench CHECKPOINT (derive_checkpoint.py makes it)\n");
    return 2;
  }
  return triptych::bench::exit_code(triptych::bench::run(argv[1]));
}
