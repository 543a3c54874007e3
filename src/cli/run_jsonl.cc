#include "cli/run_jsonl.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <list>
#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "cli/request_json.h"
#include "cli/terminal.h"
#include "engine/multimodal_engine.h"
#include "text/answer_text.h"

namespace triptych::cli {
namespace {

constexpr std::chrono::milliseconds kLook(100);  ///< between two looks at the progress bar

struct Choice {
  AnswerText text;
  FinishReason finish = FinishReason::kNone;

  bool ended() const { return finish != FinishReason::kNone; }
};

/// A request in work, with what its answers have so far.
struct InWork {
  int64_t line = 0;
  Json id;
  std::shared_ptr<TokenStream> stream;
  std::vector<Choice> choices;
  int64_t completion_tokens = 0;
  Status error = Status::ok();
};

Json error_json(const Status& status) {
  Json out = Json::object();
  out.set("code", Json::string(std::string(status_code_name(status.code()))));
  out.set("message", Json::string(status.message()));
  return out;
}

Json usage_json(const Usage& usage, int64_t completion_tokens) {
  Json out = Json::object();
  out.set("prompt_tokens", Json::integer(usage.prompt_tokens));
  out.set("media_tokens", Json::integer(usage.media_tokens));
  out.set("completion_tokens", Json::integer(completion_tokens));
  return out;
}

Json timeline_json(const Timeline& timeline) {
  Json out = stage_times_json(timeline.clock);
  out.set("media_tokens", Json::integer(timeline.media_tokens));
  out.set("media_tokens_kept", Json::integer(timeline.media_tokens_kept));
  out.set("media_bytes", Json::integer(static_cast<int64_t>(timeline.media_bytes)));
  out.set("cache", Json::string(std::string(cache_tier_name(timeline.cache_tier()))));
  out.set("cached_tokens", Json::integer(timeline.cached_tokens));
  out.set("media_in_prefix", Json::integer(timeline.media_in_prefix));
  out.set("media_in_encoder", Json::integer(timeline.media_in_encoder));
  return out;
}

/// Keeps many requests in work and writes each one's line when it ends.
class Batch {
 public:
  Batch(Session& session, MultiModalEngine& engine, std::FILE* out)
      : session_(session), engine_(engine), out_(out) {}

  size_t in_work() const { return in_work_.size(); }
  int64_t n_done() const { return n_done_; }
  int64_t n_tokens() const { return n_tokens_; }
  /// The failure of the earliest line; kOk when there was none.
  const Status& failure() const { return failure_; }
  int64_t n_failed() const { return n_failed_; }

  /// False: there is no room beside the others now; read the line again when one of them ended.
  bool start(int64_t line, Result<RequestLine> request) {
    if (!request.is_ok()) {
      write_error(line, Json(), request.status());
      return true;
    }
    const SamplingParams sampling = request->request.sampling;
    auto stream = engine_.submit(std::move(request->request), request->options, signal_);
    if (stream.status().code() == StatusCode::kResourceExhausted && !in_work_.empty()) return false;
    if (!stream.is_ok()) {
      write_error(line, request->id, stream.status());
      return true;
    }
    InWork work{.line = line, .id = request->id, .stream = std::move(*stream), .choices = {}};
    for (int64_t i = 0; i < sampling.n; ++i) {
      work.choices.push_back({AnswerText(session_.prep().shared_tokenizer(), sampling)});
    }
    in_work_.push_back(std::move(work));
    return true;
  }

  /// Waits a little for something to come and takes it.
  void take_events() {
    signal_->wait_until(std::chrono::steady_clock::now() + kLook);
    for (auto it = in_work_.begin(); it != in_work_.end();) {
      bool ended = false;
      while (const std::optional<SequenceEvent> event = it->stream->poll()) {
        ended = take(*it, *event);
        if (ended) break;
      }
      it = ended ? in_work_.erase(it) : std::next(it);
    }
  }

 private:
  /// True when that was the last of the request.
  bool take(InWork& work, const SequenceEvent& event) {
    Choice& choice = work.choices[event.token.choice];
    if (event.token.token >= 0) {
      ++n_tokens_;
      choice.text.push(event.token.token);
      if (choice.text.stopped()) choice.finish = FinishReason::kStop;
    }
    if (event.token.finish != FinishReason::kNone) {
      work.completion_tokens += event.usage.completion_tokens;
      if (!choice.ended()) choice.finish = event.token.finish;
      if (!event.token.error.is_ok()) work.error = event.token.error;
    }
    const bool all_ended = std::all_of(work.choices.begin(), work.choices.end(),
                                       [](const Choice& c) { return c.ended(); });
    if (!event.ends_request) {
      if (all_ended) engine_.cancel(work.stream->id());  // stop strings ended what still draws
      return false;
    }
    // Of several answers, the timeline of the one that ended last.
    Json timeline = event.timeline ? timeline_json(*event.timeline) : Json();
    if (work.error.is_ok()) {
      write_answer(work, event.usage, std::move(timeline));
    } else {
      write_error(work.line, work.id, work.error, std::move(timeline));
    }
    return true;
  }

  void write_answer(InWork& work, const Usage& usage, Json timeline) {
    Json choices = Json::array();
    for (Choice& choice : work.choices) {
      choice.text.end();
      if (choice.text.stopped()) choice.finish = FinishReason::kStop;
      Json json = Json::object();
      json.set("text", Json::string(choice.text.text()));
      json.set("finish_reason", Json::string(std::string(finish_reason_name(choice.finish))));
      choices.append(std::move(json));
    }
    Json line = Json::object();
    line.set("id", work.id);
    line.set("line", Json::integer(work.line));
    line.set("choices", std::move(choices));
    line.set("usage", usage_json(usage, work.completion_tokens));
    line.set("timeline", std::move(timeline));
    write(line);
  }

  void write_error(int64_t number, const Json& id, const Status& status, Json timeline = {}) {
    ++n_failed_;
    if (failure_.is_ok() || number < failed_line_) {
      failure_ = status;
      failed_line_ = number;
    }
    Json line = Json::object();
    line.set("id", id);
    line.set("line", Json::integer(number));
    line.set("error", error_json(status));
    if (!timeline.is_null()) line.set("timeline", std::move(timeline));
    write(line);
  }

  void write(const Json& line) {
    fmt::print(out_, "{}\n", line.dump());
    ++n_done_;
  }

  Session& session_;
  MultiModalEngine& engine_;
  std::FILE* out_;
  std::shared_ptr<EventSignal> signal_ = std::make_shared<EventSignal>();
  std::list<InWork> in_work_;
  int64_t n_done_ = 0;
  int64_t n_failed_ = 0;
  int64_t n_tokens_ = 0;
  Status failure_ = Status::ok();
  int64_t failed_line_ = 0;
};

struct FileCloser {
  void operator()(std::FILE* file) const {
    if (file != stdout) std::fclose(file);
  }
};
using OutputFile = std::unique_ptr<std::FILE, FileCloser>;

}  // namespace

Status run_jsonl(const RunOptions& options) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string text, read_file(options.jsonl));
  const std::vector<std::string_view> lines = lines_of(text);
  SessionOptions session_options = options.session;
  session_options.max_sequences = options.concurrency;
  TRIPTYCH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(session_options));
  print_memory(session->runner().plan());
  OutputFile out(options.out.empty() ? stdout : std::fopen(options.out.c_str(), "w"));
  if (out == nullptr) return invalid_argument(options.out + ": cannot be written");
  const SamplingParams defaults = default_sampling(session->runner().model().spec);
  const size_t slash = options.jsonl.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : options.jsonl.substr(0, slash);
  const std::unique_ptr<MultiModalEngine> engine = session->start();
  Batch batch(*session, *engine, out.get());
  ProgressBar bar("run", static_cast<int64_t>(lines.size()));
  size_t next = 0;
  int64_t n_blank = 0;
  int64_t no_room_at = -1;  // how many were done when a request found no room
  while (next < lines.size() || batch.in_work() > 0) {
    // Twice as many as run at once: the next ones are prepared meanwhile.
    while (next < lines.size() && batch.n_done() > no_room_at &&
           batch.in_work() < static_cast<size_t>(2 * options.concurrency)) {
      const auto number = static_cast<int64_t>(next) + 1;
      const std::string_view line = lines[next++];
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
        ++n_blank;
        continue;
      }
      const std::string source = fmt::format("{}:{}", options.jsonl, number);
      const Result<Json> json = parse_json(line);
      const double start = steady_ms();
      Result<RequestLine> request = json.is_ok()
                                        ? read_request(JsonRef(*json, source), folder, defaults)
                                        : json.status().with_context(source);
      if (request.is_ok() && !request->request.media.empty()) {
        request->options.fetch_ms = steady_ms() - start;
      }
      if (!batch.start(number, std::move(request))) {
        --next;
        no_room_at = batch.n_done();
      }
    }
    if (batch.in_work() > 0) batch.take_events();
    bar.update(batch.n_done() + n_blank, fmt::format("{} tokens", batch.n_tokens()));
  }
  if (batch.failure().is_ok()) return Status::ok();
  return batch.failure().with_context(
      fmt::format("{} of {} requests failed, the first with", batch.n_failed(), batch.n_done()));
}

}  // namespace triptych::cli
