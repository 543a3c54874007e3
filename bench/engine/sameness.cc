// Random requests, alone and in every other way the engine may run them: greedy tokens must be the
// same. Prints how many cases differ.
#include <fmt/format.h>

#include <cstdio>
#include <random>

#include "base/thread_pool.h"
#include "rig.h"

namespace triptych::bench {
namespace {

constexpr uint32_t kCases = 500;
constexpr int64_t kContext = 640;

struct Way {
  const char* name;
  int64_t max_sequences;
  int64_t chunk_rows;
  uint64_t kv_cap_bytes;
  bool caches;
  bool optimistic = false;  ///< lets in more than fits, so that some give way and come back
};

Request make_case(uint32_t number, const std::vector<MediaItem>& pictures) {
  std::mt19937 random(number);
  const auto max_tokens = static_cast<int64_t>(1 + random() % 40);
  if (random() % 5 < 2) return text_request(random() % 40, max_tokens);
  return picture_request(pictures[random() % 12], max_tokens);
}

Result<std::vector<std::vector<int32_t>>> answers(const std::string& model, const Way& way,
                                                  const std::vector<PreparedRequest>& cases) {
  EngineOptions options;
  options.limits.context_tokens = kContext;
  options.limits.max_sequences = way.max_sequences;
  options.limits.chunk_rows = way.chunk_rows;
  options.limits.kv_cap_bytes = way.kv_cap_bytes;
  if (way.optimistic) {
    options.config.scheduler.admission = AdmissionRule::kPromptOnly;
    options.config.scheduler.pause_below = 0;
  }
  if (!way.caches) options.turn_caches_off();
  TRIPTYCH_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, load_engine(model, options));
  std::vector<std::vector<int32_t>> out(cases.size());
  std::vector<size_t> by_id = {0};
  std::mt19937 random(5);
  size_t next = 0;
  int32_t preempted = 0;
  while (next < cases.size() || !engine->idle()) {
    // Bursts, so that the batch is sometimes full and sometimes empty.
    const size_t burst = way.max_sequences == 1 ? (engine->idle() ? 1 : 0) : random() % 3;
    for (size_t i = 0; i < burst && next < cases.size(); ++i) {
      TRIPTYCH_ASSIGN_OR_RETURN(const uint64_t id, engine->submit(cases[next]));
      by_id.resize(id + 1);
      by_id[id] = next++;
    }
    for (const SequenceEvent& event : engine->step()) {
      TRIPTYCH_RETURN_IF_ERROR(event.token.error);
      if (event.token.token >= 0) out[by_id[event.token.sequence]].push_back(event.token.token);
      preempted += event.ends_request && event.usage.preemptions > 0;
    }
  }
  fmt::print("{:<28} {} requests preempted\n", way.name, preempted);
  return out;
}

Status run(const std::string& model, const std::string& pictures_folder) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<MediaItem> pictures, load_pictures(pictures_folder));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto checkpoint, Checkpoint::open(model));
  TRIPTYCH_ASSIGN_OR_RETURN(const ModelSpec spec, parse_model_spec(*checkpoint));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto prep, Preprocessor::load(*checkpoint, spec));
  ThreadPool pool(2);
  TensorRegistry registry;
  std::vector<PreparedRequest> cases;
  for (uint32_t i = 0; i < kCases; ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(
        PreparedRequest prepared,
        prep->prepare(make_case(i, pictures), spec.text.max_positions, pool, registry));
    cases.push_back(std::move(prepared));
  }
  constexpr uint64_t kAmple = uint64_t{4} << 30;
  constexpr uint64_t kTight = uint64_t{44} << 16;  // 44 pages: a picture's prompt takes 38
  TRIPTYCH_ASSIGN_OR_RETURN(const auto alone,
                            answers(model, {"alone", 1, 1024, kAmple, false}, cases));
  const Way ways[] = {{"batched", 16, 512, kAmple, false},
                      {"chunked", 1, 48, kAmple, false},
                      {"cached", 1, 512, kAmple, true},
                      {"batched, chunked, cached", 16, 96, kAmple, true},
                      {"resumed, in a small pool", 32, 128, kTight, true, true}};
  int64_t different = 0;
  for (const Way& way : ways) {
    TRIPTYCH_ASSIGN_OR_RETURN(const auto got, answers(model, way, cases));
    int64_t n = 0;
    for (size_t i = 0; i < cases.size(); ++i) n += got[i] != alone[i];
    fmt::print("{:<28} {} of {} differ from alone\n", way.name, n, cases.size());
    different += n;
  }
  fmt::print("RESULT {{\"different\": {}}}\n", different);
  return Status::ok();
}

}  // namespace
}  // namespace triptych::bench

int main(int argc, char** argv) {
  return triptych::bench::exit_code(triptych::bench::run(
      argc > 1 ? argv[1] : "models/demo", argc > 2 ? argv[2] : "tests/eval/demo/images"));
}
