// Text beside pictures: the same text arrivals alone, and with picture requests among them, at 70 %
// of what the machine holds. How much longer do text answers take at P99, and how much slower do
// picture requests decode than alone? The same with towers that run in one piece, for contrast. The
// runs take turns; figures are medians over the rounds.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "rig.h"

namespace triptych::bench {
namespace {

constexpr double kPictureShare = 0.3;
constexpr double kLoad = 0.7;
constexpr int kRounds = 5;
constexpr int64_t kTextTokens = 48;
constexpr int64_t kPictureTokens = 32;
constexpr int64_t kSequences = 32;

EngineOptions options_of(bool sliced) {
  EngineOptions out;
  out.limits.max_sequences = kSequences;
  out.config.scheduler.slice_encoding = sliced;
  return out;
}

/// Requests a second that the engine completes when as many as it holds are in work.
Result<double> capacity(const std::string& model, const std::vector<MediaItem>& pictures) {
  TRIPTYCH_ASSIGN_OR_RETURN(const Rig rig, Rig::start(model, options_of(true)));
  std::vector<Arrival> arrivals;
  std::mt19937 random(1);
  for (uint32_t i = 0; i < 200; ++i) {
    const bool picture = std::uniform_real_distribution<double>()(random) < kPictureShare;
    arrivals.push_back(
        {.has_picture = picture,
         .request = picture ? picture_request(pictures[i % pictures.size()], kPictureTokens)
                            : text_request(i, kTextTokens)});
  }
  const std::vector<Answered> answers = play(*rig.engine, arrivals, kSequences);
  return static_cast<double>(answers.size()) / end_ms(answers) * 1e3;
}

/// Poisson arrivals of texts and of pictures, each with its own random numbers: leaving one kind
/// out changes nothing for the other.
std::vector<Arrival> arrivals_of(double rate, double seconds,
                                 const std::vector<MediaItem>& pictures, bool with_text,
                                 bool with_pictures, uint32_t round) {
  std::vector<Arrival> out;
  const auto add = [&](bool picture, double per_s, uint32_t seed) {
    std::mt19937 random(seed);
    std::exponential_distribution<double> gap(per_s);
    uint32_t i = 0;
    for (double at = gap(random); at < seconds; at += gap(random), ++i) {
      out.push_back({.at_ms = at * 1e3,
                     .has_picture = picture,
                     .request = picture
                                    ? picture_request(pictures[i % pictures.size()], kPictureTokens)
                                    : text_request(1000 + i, kTextTokens)});
    }
  };
  if (with_text) add(false, rate * (1 - kPictureShare), 11 + 2 * round);
  if (with_pictures) add(true, rate * kPictureShare, 12 + 2 * round);
  std::sort(out.begin(), out.end(),
            [](const Arrival& a, const Arrival& b) { return a.at_ms < b.at_ms; });
  return out;
}

struct Figures {
  double text_p50 = 0;
  double text_p99 = 0;
  double picture_tpot_p99 = 0;
  double picture_ttft_p50 = 0;
  double picture_ttft_p99 = 0;
};

Result<Figures> measure(const std::string& model, const std::vector<Arrival>& arrivals,
                        bool sliced) {
  TRIPTYCH_ASSIGN_OR_RETURN(const Rig rig, Rig::start(model, options_of(sliced)));
  play(*rig.engine, {{.request = text_request(0, 8)}});
  std::vector<double> text;
  std::vector<double> tpot;
  std::vector<double> ttft;
  for (const Answered& answer : play(*rig.engine, arrivals)) {
    TRIPTYCH_RETURN_IF_ERROR(answer.error);
    if (answer.has_picture) {
      tpot.push_back(answer.tpot_ms());
      ttft.push_back(answer.first_token_ms - answer.at_ms);
    } else {
      text.push_back(answer.latency_ms());
    }
  }
  return Figures{quantile(text, .5), quantile(text, .99), quantile(tpot, .99), quantile(ttft, .5),
                 quantile(ttft, .99)};
}

/// Of a figure over the rounds: one disturbance of the machine spoils one round.
double median(const std::vector<Figures>& rounds, double Figures::*figure) {
  std::vector<double> values;
  for (const Figures& round : rounds) values.push_back(round.*figure);
  return quantile(values, .5);
}

Status run(const std::string& model, const std::string& pictures_folder, double seconds) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<MediaItem> pictures, load_pictures(pictures_folder));
  TRIPTYCH_ASSIGN_OR_RETURN(const double most, capacity(model, pictures));
  const double rate = kLoad * most;
  fmt::print("capacity {:.1f} requests/s, 30 % with a picture; {} rounds of {:.0f} s at {:.1f}/s\n",
             most, kRounds, seconds, rate);
  struct Run {
    const char* name;
    bool with_text;
    bool with_pictures;
    bool sliced;
    std::vector<Figures> rounds = {};
  };
  Run runs[] = {{"text alone", true, false, true},
                {"pictures alone", false, true, true},
                {"mixed", true, true, true},
                {"mixed, towers in one piece", true, true, false}};
  for (uint32_t round = 0; round < kRounds; ++round) {
    for (Run& one : runs) {
      const std::vector<Arrival> arrivals =
          arrivals_of(rate, seconds, pictures, one.with_text, one.with_pictures, round);
      TRIPTYCH_ASSIGN_OR_RETURN(const Figures figures, measure(model, arrivals, one.sliced));
      one.rounds.push_back(figures);
    }
  }
  fmt::print("{:<26}{:>10}{:>10}{:>20}{:>19}{:>19}\n", "ms", "text P50", "text P99",
             "picture token P99", "picture TTFT P50", "picture TTFT P99");
  for (const Run& one : runs) {
    fmt::print("{:<26}{:>10.1f}{:>10.1f}{:>20.2f}{:>19.0f}{:>19.0f}\n", one.name,
               median(one.rounds, &Figures::text_p50), median(one.rounds, &Figures::text_p99),
               median(one.rounds, &Figures::picture_tpot_p99),
               median(one.rounds, &Figures::picture_ttft_p50),
               median(one.rounds, &Figures::picture_ttft_p99));
  }
  const double text_p99 = median(runs[0].rounds, &Figures::text_p99);
  fmt::print(
      "RESULT {{\"text_p99_ratio\": {:.3f}, \"picture_decode_p99_ratio\": {:.3f}, "
      "\"text_p99_ratio_unsliced\": {:.3f}}}\n",
      median(runs[2].rounds, &Figures::text_p99) / text_p99,
      median(runs[2].rounds, &Figures::picture_tpot_p99) /
          median(runs[1].rounds, &Figures::picture_tpot_p99),
      median(runs[3].rounds, &Figures::text_p99) / text_p99);
  return Status::ok();
}

}  // namespace
}  // namespace triptych::bench

int main(int argc, char** argv) {
  return triptych::bench::exit_code(triptych::bench::run(
      argc > 1 ? argv[1] : "models/demo", argc > 2 ? argv[2] : "tests/eval/demo/images",
      argc > 3 ? std::atof(argv[3]) : 8));
}
