// A chat over a sliding window of 5 pictures: what are prefix and encoder cache worth? Each picture
// is talked about in three turns: it comes in with the first (and pushes the oldest picture out,
// with its turns), two more questions follow. Every turn sends the whole window, as chat clients
// do, with fixed answers in the history.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "rig.h"

namespace triptych::bench {
namespace {

constexpr size_t kWindow = 5;
constexpr size_t kTurnsEach = 3;
constexpr size_t kSlides =
    8;  // pictures that come in during a run, the first window's last included
constexpr size_t kChats = 4;
constexpr int64_t kAnswer = 16;
constexpr const char* kQuestions[kTurnsEach] = {"What is in the picture?", "What color is it?",
                                                "How many shapes are there?"};

/// What turn `turn` about picture `newest` sends.
Request make_turn(std::span<const MediaItem> pictures, size_t newest, size_t turn) {
  Request out;
  for (size_t picture = newest + 1 - kWindow; picture <= newest; ++picture) {
    const size_t n_turns = picture == newest ? turn + 1 : kTurnsEach;
    for (size_t t = 0; t < n_turns; ++t) {
      RequestMessage question{"user", {}};
      if (t == 0) {
        question.parts.push_back({{}, out.media.size()});
        out.media.push_back(pictures[picture]);
      }
      question.parts.push_back({kQuestions[t], std::nullopt});
      out.messages.push_back(std::move(question));
      if (picture == newest && t == turn) break;
      out.messages.push_back({"assistant", {{"It is a red circle.", std::nullopt}}});
    }
  }
  out.sampling.max_tokens = kAnswer;
  out.sampling.ignore_eos = true;
  return out;
}

/// The turns of one chat, one behind the other.
std::vector<Answered> chat(MultiModalEngine& engine, std::span<const MediaItem> pictures) {
  std::vector<Arrival> turns;
  for (size_t slide = 0; slide < kSlides; ++slide) {
    for (size_t t = 0; t < kTurnsEach; ++t) {
      turns.push_back(
          {.has_picture = true, .request = make_turn(pictures, kWindow - 1 + slide, t)});
    }
  }
  return play(engine, turns, 1);
}

struct Run {
  std::vector<std::vector<int32_t>> tokens;
  double ttft_ms = 0;         ///< mean of one chat alone
  double ttft_slide_ms = 0;   ///< of its turns with a new picture, without the first
  double ttft_again_ms = 0;   ///< of the others
  double requests_per_s = 0;  ///< of several chats at once
};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

Result<Run> measure(const std::string& model, const std::vector<MediaItem>& pictures, bool caches) {
  EngineOptions options;
  options.limits.max_sequences = kChats;
  options.config.prefix_cache = caches;
  if (!caches) options.config.encoder_cache_bytes = 0;
  TRIPTYCH_ASSIGN_OR_RETURN(const Rig rig, Rig::start(model, options));
  play(*rig.engine, {{.request = text_request(0, 8)}});
  constexpr size_t kOfAChat = kWindow + kSlides;
  const std::span all(pictures);
  Run out;
  std::vector<double> ttft;
  std::vector<double> slide;
  std::vector<double> again;
  const std::vector<Answered> single = chat(*rig.engine, all.first(kOfAChat));
  for (size_t i = 0; i < single.size(); ++i) {
    TRIPTYCH_RETURN_IF_ERROR(single[i].error);
    ttft.push_back(single[i].ttft_ms());
    if (i > 0) (i % kTurnsEach == 0 ? slide : again).push_back(single[i].ttft_ms());
    out.tokens.push_back(single[i].tokens);
  }
  out.ttft_ms = mean(ttft);
  out.ttft_slide_ms = mean(slide);
  out.ttft_again_ms = mean(again);

  const auto start = std::chrono::steady_clock::now();
  std::vector<std::vector<Answered>> answers(kChats);
  std::vector<std::thread> threads;
  for (size_t c = 0; c < kChats; ++c) {
    threads.emplace_back(
        [&, c] { answers[c] = chat(*rig.engine, all.subspan((c + 1) * kOfAChat, kOfAChat)); });
  }
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  for (const auto& part : answers) {
    for (const Answered& answer : part) {
      TRIPTYCH_RETURN_IF_ERROR(answer.error);
      out.tokens.push_back(answer.tokens);
    }
  }
  out.requests_per_s = static_cast<double>(kChats * kSlides * kTurnsEach) / wall.count();
  return out;
}

Status run(const std::string& model, const std::string& pictures_folder) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<MediaItem> pictures, load_pictures(pictures_folder));
  TRIPTYCH_ASSIGN_OR_RETURN(const Run off, measure(model, pictures, false));
  TRIPTYCH_ASSIGN_OR_RETURN(const Run on, measure(model, pictures, true));
  fmt::print("{:<14}{:>14}{:>22}{:>22}{:>24}\n", "", "TTFT ms", "with a new picture", "asked again",
             "requests/s, 4 chats");
  const auto row = [](const char* name, const Run& r) {
    fmt::print("{:<14}{:>14.1f}{:>22.1f}{:>22.1f}{:>24.2f}\n", name, r.ttft_ms, r.ttft_slide_ms,
               r.ttft_again_ms, r.requests_per_s);
  };
  row("caches off", off);
  row("caches on", on);
  if (on.tokens != off.tokens) return internal_error("answers differ with and without caches");
  fmt::print("{} answers are the same with and without caches\n", on.tokens.size());
  fmt::print("RESULT {{\"ttft_cut\": {:.4f}, \"rps_gain\": {:.4f}}}\n",
             1 - on.ttft_ms / off.ttft_ms, on.requests_per_s / off.requests_per_s - 1);
  return Status::ok();
}

}  // namespace
}  // namespace triptych::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: engine_window_bench CHECKPOINT PICTURES\n");
    return 2;
  }
  const triptych::Status status = triptych::bench::run(argv[1], argv[2]);
  if (!status.is_ok()) fmt::print(stderr, "{}\n", status.message());
  return status.is_ok() ? 0 : 1;
}
