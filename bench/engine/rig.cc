#include "rig.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <list>
#include <random>

#include "backends/backend_list.h"
#include "base/clock.h"
#include "base/file.h"

namespace triptych::bench {
namespace {

constexpr double kLongMs = 1000;

std::chrono::steady_clock::duration milliseconds(double ms) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double, std::milli>(ms));
}

struct Open {
  size_t index;
  std::shared_ptr<TokenStream> stream;
};

}  // namespace

Result<std::unique_ptr<Engine>> load_engine(const std::string& model, EngineOptions options) {
  options.settings = Settings::from_environment();
  TRIPTYCH_ASSIGN_OR_RETURN(const auto checkpoint, Checkpoint::open(model));
  TRIPTYCH_ASSIGN_OR_RETURN(const Backend backend, backends().front().make(options.settings));
  return Engine::load(*checkpoint, backend, options);
}

Result<Rig> Rig::start(const std::string& model, const EngineOptions& options) {
  Rig rig;
  TRIPTYCH_ASSIGN_OR_RETURN(rig.checkpoint, Checkpoint::open(model));
  TRIPTYCH_ASSIGN_OR_RETURN(const ModelSpec spec, parse_model_spec(*rig.checkpoint));
  TRIPTYCH_ASSIGN_OR_RETURN(rig.prep, Preprocessor::load(*rig.checkpoint, spec));
  TRIPTYCH_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, load_engine(model, options));
  rig.plan = engine->model_runner().plan();
  rig.preparer = std::make_shared<const CountingPreparer>(std::make_unique<const MediaPreparer>(
      rig.prep, rig.plan.context_tokens, engine->model_runner().registry(),
      rig.plan.media.pixel_cache_bytes));
  rig.inner = engine.get();
  rig.engine = std::make_unique<MultiModalEngine>(
      std::move(engine), rig.preparer, PrepLimits{.max_host_bytes = rig.plan.media.request_bytes});
  return rig;
}

std::vector<Answered> play(MultiModalEngine& engine, const std::vector<Arrival>& arrivals,
                           size_t most_open) {
  const double start = steady_ms();
  const auto now_ms = [&] { return steady_ms() - start; };
  std::vector<Answered> out(arrivals.size());
  const auto signal = std::make_shared<EventSignal>();
  std::list<Open> open;
  size_t next = 0;
  for (;;) {
    while (next < arrivals.size() && arrivals[next].at_ms <= now_ms() && open.size() < most_open) {
      Answered& answer = out[next];
      answer.has_picture = arrivals[next].has_picture;
      answer.at_ms = std::max(arrivals[next].at_ms, most_open == SIZE_MAX ? 0 : now_ms());
      auto stream = engine.submit(arrivals[next].request, {}, signal);
      if (stream.is_ok()) {
        open.push_back({next, std::move(*stream)});
      } else {
        answer.error = stream.status();
      }
      ++next;
    }
    for (auto it = open.begin(); it != open.end();) {
      bool ended = false;
      while (const auto event = it->stream->poll()) {
        Answered& answer = out[it->index];
        if (event->token.token >= 0) {
          if (answer.tokens.empty()) answer.first_token_ms = now_ms();
          answer.tokens.push_back(event->token.token);
        }
        if (!event->token.error.is_ok()) answer.error = event->token.error;
        if (event->ends_request) {
          answer.end_ms = now_ms();
          ended = true;
          break;
        }
      }
      it = ended ? open.erase(it) : std::next(it);
    }
    if (open.empty() && next == arrivals.size()) break;
    const bool arrives = next < arrivals.size() && open.size() < most_open;
    const double until_ms = arrives ? arrivals[next].at_ms - now_ms() : kLongMs;
    if (until_ms > 0) signal->wait_until(std::chrono::steady_clock::now() + milliseconds(until_ms));
  }
  return out;
}

Result<std::vector<MediaItem>> load_pictures(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path());
  }
  std::sort(names.begin(), names.end());
  std::vector<MediaItem> out;
  for (const std::string& name : names) {
    TRIPTYCH_ASSIGN_OR_RETURN(std::string bytes, read_file(name));
    out.push_back({Modality::kImage, name, std::make_shared<const std::string>(std::move(bytes))});
  }
  return out;
}

Request text_request(uint32_t seed, int64_t max_tokens) {
  static constexpr const char* kWords[] = {"red",  "circle", "where", "is",   "the",  "blue",
                                           "star", "left",   "of",    "many", "what", "row"};
  std::mt19937 random(seed);
  Request out;
  std::string text;
  for (uint32_t n = 12 + random() % 24; n > 0; --n) {
    text += kWords[random() % std::size(kWords)];
    text += ' ';
  }
  out.messages.push_back({"user", {{text, std::nullopt}}});
  out.sampling.max_tokens = max_tokens;
  out.sampling.ignore_eos = true;
  return out;
}

Request picture_request(const MediaItem& picture, int64_t max_tokens) {
  Request out;
  out.media.push_back(picture);
  out.messages.push_back({"user", {{{}, 0}, {"Describe the picture.", std::nullopt}}});
  out.sampling.max_tokens = max_tokens;
  out.sampling.ignore_eos = true;
  return out;
}

double end_ms(const std::vector<Answered>& answers) {
  double out = 0;
  for (const Answered& answer : answers) out = std::max(out, answer.end_ms);
  return out;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(values.size())));
  return values[std::min(values.size() - 1, rank > 0 ? rank - 1 : 0)];
}

double resident_mib() {
  int64_t n_all = 0;
  int64_t n_resident = 0;
  std::ifstream("/proc/self/statm") >> n_all >> n_resident;
  return static_cast<double>(n_resident * sysconf(_SC_PAGESIZE)) / (1 << 20);
}

int exit_code(const Status& status) {
  if (!status.is_ok()) fmt::print(stderr, "{}\n", status.message());
  return status.is_ok() ? 0 : 1;
}

}  // namespace triptych::bench
