// A chat over a sliding window of 5 pictures: what are prefix and encoder cache worth? Each picture
// is talked about in three turns: it comes in with the first (and pushes the oldest picture out,
// with its turns), two more questions follow. Every turn sends the whole window, as chat clients
// do, with fixed answers in the history.
#include <fmt/format.h>

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
constexpr size_t kOfAChat = kWindow + kSlides;  // pictures
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

/// The turns about one new picture, one behind the other.
std::vector<Answered> talk(MultiModalEngine& engine, std::span<const MediaItem> pictures,
                           size_t newest) {
  std::vector<Arrival> turns;
  for (size_t t = 0; t < kTurnsEach; ++t) {
    turns.push_back({.has_picture = true, .request = make_turn(pictures, newest, t)});
  }
  return play(engine, turns, 1);
}

/// An engine with or without caches, and what it took.
struct Side {
  Rig rig;
  std::vector<std::vector<int32_t>> tokens;
  std::vector<double> ttft_slide_ms;  ///< of turns with a new picture
  std::vector<double> ttft_again_ms;  ///< of the others
  double busy_s = 0;                  ///< several chats at once
  int64_t n_requests = 0;             ///< that were answered meanwhile

  /// Medians of both kinds of turns, by how many of a picture's turns are of the kind.
  double ttft_ms() const {
    return (quantile(ttft_slide_ms, .5) + (kTurnsEach - 1) * quantile(ttft_again_ms, .5)) /
           kTurnsEach;
  }
  double requests_per_s() const { return static_cast<double>(n_requests) / busy_s; }
};

Result<Side> start(const std::string& model, bool caches) {
  EngineOptions options;
  options.limits.max_sequences = kChats;
  if (!caches) options.turn_caches_off();
  Side out;
  TRIPTYCH_ASSIGN_OR_RETURN(out.rig, Rig::start(model, options));
  play(*out.rig.engine, {{.request = text_request(0, 8)}});
  return out;
}

Status talk_alone(Side& side, std::span<const MediaItem> pictures, size_t newest) {
  const std::vector<Answered> answers = talk(*side.rig.engine, pictures, newest);
  for (size_t t = 0; t < answers.size(); ++t) {
    TRIPTYCH_RETURN_IF_ERROR(answers[t].error);
    (t == 0 ? side.ttft_slide_ms : side.ttft_again_ms).push_back(answers[t].ttft_ms());
    side.tokens.push_back(answers[t].tokens);
  }
  return Status::ok();
}

Status talk_at_once(Side& side, std::span<const MediaItem> pictures, size_t newest) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::vector<Answered>> answers(kChats);
  std::vector<std::thread> threads;
  for (size_t c = 0; c < kChats; ++c) {
    threads.emplace_back([&, c] {
      answers[c] = talk(*side.rig.engine, pictures.subspan((c + 1) * kOfAChat, kOfAChat), newest);
    });
  }
  for (std::thread& thread : threads) thread.join();
  side.busy_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (const auto& part : answers) {
    for (const Answered& answer : part) {
      TRIPTYCH_RETURN_IF_ERROR(answer.error);
      side.tokens.push_back(answer.tokens);
      ++side.n_requests;
    }
  }
  return Status::ok();
}

Status run(const std::string& model, const std::string& pictures_folder) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<MediaItem> pictures, load_pictures(pictures_folder));
  TRIPTYCH_ASSIGN_OR_RETURN(Side off, start(model, false));
  TRIPTYCH_ASSIGN_OR_RETURN(Side on, start(model, true));
  // Picture by picture in turn, so that both meet the same machine.
  for (size_t slide = 0; slide < kSlides; ++slide) {
    for (Side* side : {&off, &on}) {
      TRIPTYCH_RETURN_IF_ERROR(talk_alone(*side, pictures, kWindow - 1 + slide));
    }
  }
  for (size_t slide = 0; slide < kSlides; ++slide) {
    for (Side* side : {&off, &on}) {
      TRIPTYCH_RETURN_IF_ERROR(talk_at_once(*side, pictures, kWindow - 1 + slide));
    }
  }
  fmt::print("{:<14}{:>14}{:>22}{:>22}{:>24}\n", "", "TTFT ms", "new picture, median",
             "again, median", "requests/s, 4 chats");
  const auto row = [](const char* name, const Side& s) {
    fmt::print("{:<14}{:>14.1f}{:>22.1f}{:>22.1f}{:>24.2f}\n", name, s.ttft_ms(),
               quantile(s.ttft_slide_ms, .5), quantile(s.ttft_again_ms, .5), s.requests_per_s());
  };
  row("caches off", off);
  row("caches on", on);
  if (on.tokens != off.tokens) return internal_error("answers differ with and without caches");
  fmt::print("{} answers are the same with and without caches\n", on.tokens.size());
  fmt::print("RESULT {{\"ttft_cut\": {:.4f}, \"rps_gain\": {:.4f}}}\n",
             1 - on.ttft_ms() / off.ttft_ms(), on.requests_per_s() / off.requests_per_s() - 1);
  return Status::ok();
}

}  // namespace
}  // namespace triptych::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: engine_window_bench CHECKPOINT PICTURES\n");
    return 2;
  }
  return triptych::bench::exit_code(triptych::bench::run(argv[1], argv[2]));
}
