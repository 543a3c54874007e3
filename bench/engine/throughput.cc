// Tokens a second with 1, 4, 16 and 64 requests in work at once: text, pictures that are all
// different, and one picture asked about again and again.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>

#include "rig.h"

namespace triptych::bench {
namespace {

constexpr int64_t kTextTokens = 96;
constexpr int64_t kPictureTokens = 48;
constexpr size_t kStreams[] = {1, 4, 16, 64};

using Make = std::function<Request(size_t number)>;

/// Tokens a second of a run of `n` requests, `at_once` in work. A fresh engine each time, so that
/// no cache holds what an earlier run computed.
Result<double> measure(const std::string& model, size_t at_once, size_t n, const Make& make) {
  EngineOptions options;
  options.limits.max_sequences = static_cast<int64_t>(at_once);
  TRIPTYCH_ASSIGN_OR_RETURN(const Rig rig, Rig::start(model, options));
  const std::vector<Arrival> warm = {{.request = text_request(0, 8)}};
  play(*rig.engine, warm);
  std::vector<Arrival> arrivals;
  for (size_t i = 0; i < n; ++i) arrivals.push_back({.request = make(i)});
  const std::vector<Answered> answers = play(*rig.engine, arrivals, at_once);
  int64_t tokens = 0;
  for (const Answered& answer : answers) {
    TRIPTYCH_RETURN_IF_ERROR(answer.error);
    tokens += answer.n_tokens();
  }
  return static_cast<double>(tokens) / end_ms(answers) * 1e3;
}

Status run(const std::string& model, const std::string& pictures_folder) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<MediaItem> pictures, load_pictures(pictures_folder));
  struct Kind {
    const char* name;
    Make make;
    size_t n;
    double at_1 = 0;
    double at_16 = 0;
  };
  Kind kinds[] = {
      {"text", [](size_t i) { return text_request(static_cast<uint32_t>(i), kTextTokens); }, 256},
      {"picture",
       [&](size_t i) { return picture_request(pictures[i % pictures.size()], kPictureTokens); },
       64},
      {"repeated", [&](size_t) { return picture_request(pictures[0], kPictureTokens); }, 256},
  };
  fmt::print("{:<10}", "tokens/s");
  for (const size_t streams : kStreams) fmt::print("{:>12}", streams);
  fmt::print("\n");
  for (Kind& kind : kinds) {
    fmt::print("{:<10}", kind.name);
    for (const size_t streams : kStreams) {
      const size_t n = std::max(streams, streams == 1 ? kind.n / 4 : kind.n);
      TRIPTYCH_ASSIGN_OR_RETURN(const double rate, measure(model, streams, n, kind.make));
      if (streams == 1) kind.at_1 = rate;
      if (streams == 16) kind.at_16 = rate;
      fmt::print("{:>12.0f}", rate);
      std::fflush(stdout);
    }
    fmt::print("\n");
  }
  fmt::print(
      "RESULT {{\"text_scale_16\": {:.3f}, \"picture_scale_16\": {:.3f}, \"repeated_scale_16\": "
      "{:.3f}}}\n",
      kinds[0].at_16 / kinds[0].at_1, kinds[1].at_16 / kinds[1].at_1,
      kinds[2].at_16 / kinds[2].at_1);
  return Status::ok();
}

}  // namespace
}  // namespace triptych::bench

int main(int argc, char** argv) {
  return triptych::bench::exit_code(triptych::bench::run(
      argc > 1 ? argv[1] : "models/demo", argc > 2 ? argv[2] : "tests/eval/demo/images"));
}
