#include "cli/session.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "backends/backend_list.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/terminal.h"
#include "text/answer_text.h"

namespace triptych::cli {

struct Session::TensorTrace {
  std::ofstream file;
};

Session::Session() = default;
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::open(const SessionOptions& options) {
  std::unique_ptr<Session> session(new Session());
  EngineOptions engine_options;
  engine_options.settings = Settings::from_environment();
  TRIPTYCH_ASSIGN_OR_RETURN(const LogLevel level,
                            parse_log_level(engine_options.settings.log_level));
  set_log_level(level);
  engine_options.limits.context_tokens = options.context_tokens;
  engine_options.limits.max_sequences = options.max_sequences;
  engine_options.limits.memory_cap_bytes = options.memory_cap_bytes;
  engine_options.config.failure_folder = std::filesystem::temp_directory_path();
  if (!options.caches) engine_options.turn_caches_off();
  TRIPTYCH_ASSIGN_OR_RETURN(session->checkpoint_, Checkpoint::open(options.model));
  TRIPTYCH_ASSIGN_OR_RETURN(const ModelSpec spec, parse_model_spec(*session->checkpoint_));
  TRIPTYCH_ASSIGN_OR_RETURN(session->prep_,
                            Preprocessor::load(*session->checkpoint_, spec,
                                               {.chat_template_file = options.chat_template_file,
                                                .sandbox = options.sandbox}));
  TRIPTYCH_ASSIGN_OR_RETURN(const Backend backend,
                            backends().front().make(engine_options.settings));
  if (!options.trace_file.empty()) {
    TRIPTYCH_ASSIGN_OR_RETURN(session->trace_, TraceWriter::open(options.trace_file));
    engine_options.config.trace = session->trace_.get();
  }
  TRIPTYCH_ASSIGN_OR_RETURN(session->engine_,
                            Engine::load(*session->checkpoint_, backend, engine_options));
  session->preparer_ = std::make_shared<const MediaPreparer>(
      session->prep_, session->context_tokens(), session->runner().registry(),
      session->runner().plan().media.pixel_cache_bytes);
  if (!options.trace_tensors_file.empty()) {
    session->tensor_trace_ = std::make_unique<TensorTrace>();
    session->tensor_trace_->file.open(options.trace_tensors_file);
    if (!session->tensor_trace_->file) {
      return invalid_argument(options.trace_tensors_file + ": cannot be written");
    }
    session->engine_->model_runner().registry().set_sink(
        [trace = session->tensor_trace_.get()](const TensorRecord& r) {
          trace->file << to_json_line(r) << '\n';
          trace->file.flush();
        });
  }
  return session;
}

Result<Answer> Session::answer(const Request& request, const OnText& on_text) {
  const double now_ms = engine_->now_ms();
  Timeline timeline{{Stage::kProcess, now_ms}, now_ms};
  const auto begin = [&](PrepStage stage) {
    timeline.clock.enter(stage_of(stage), engine_->now_ms());
    return true;
  };
  TRIPTYCH_ASSIGN_OR_RETURN(PreparedRequest prepared,
                            preparer_->prepare(request, {.pool = runner().pool(), .begin = begin}));
  return run(std::move(prepared), std::move(timeline), on_text);
}

Result<Answer> Session::answer_prepared(PreparedRequest prepared, const OnText& on_text) {
  return run(std::move(prepared), std::nullopt, on_text);
}

Result<Answer> Session::run(PreparedRequest prepared, std::optional<Timeline> begun,
                            const OnText& on_text) {
  AnswerText text(prep_->shared_tokenizer(), prepared.sampling);
  Answer answer;
  answer.prompt_ids = prepared.ids;
  TRIPTYCH_ASSIGN_OR_RETURN(const uint64_t id,
                            engine_->submit(std::move(prepared), {}, std::move(begun)));
  bool wanted = true;
  const auto emit = [&](const std::string& piece) {
    if (piece.empty()) return;
    if (on_text && wanted && !on_text(piece)) wanted = false;
  };
  while (!engine_->idle()) {
    const std::vector<SequenceEvent> events = engine_->step();
    if (events.empty()) {
      // Between slices of encoding or chunks of the prompt: an empty piece asks whether to go on.
      if (on_text && !on_text({})) engine_->cancel(id);
      continue;
    }
    answer.usage = events.front().usage;
    if (trace_ != nullptr && events.front().timeline) {
      trace_->answer(id, 0, *events.front().timeline,
                     finish_reason_name(events.front().token.finish));
    }
    const TokenEvent* event = &events.front().token;
    if (event->finish == FinishReason::kError) return event->error;
    if (event->token >= 0) {
      answer.token_ids.push_back(event->token);
      if (event->logprobs) answer.logprobs.push_back(*event->logprobs);
      emit(text.push(event->token));
    }
    if (event->finish != FinishReason::kNone) {
      if (answer.finish == FinishReason::kNone) answer.finish = event->finish;
    } else if (text.stopped()) {
      answer.finish = FinishReason::kStop;
      engine_->cancel(id);
    } else if (!wanted) {
      answer.finish = FinishReason::kCancelled;
      engine_->cancel(id);
    }
  }
  emit(text.end());
  if (text.stopped()) answer.finish = FinishReason::kStop;
  answer.text = text.text();
  return answer;
}

std::unique_ptr<MultiModalEngine> Session::start(size_t max_requests) {
  const PrepLimits limits{.max_open = max_requests,
                          .max_host_bytes = runner().plan().media.request_bytes};
  return std::make_unique<MultiModalEngine>(std::move(engine_), preparer_, limits);
}

void print_memory(const MemoryPlan& plan) {
  const auto bytes = [](uint64_t n) { return human_bytes(static_cast<double>(n)); };
  fmt::print(stderr,
             "memory: weights {}, KV cache {}, workspace {}; with media and requests at most {}\n",
             bytes(plan.weight_bytes), bytes(plan.kv_bytes),
             bytes(plan.workspace_bytes + plan.encode_bytes), bytes(plan.at_most()));
}

Result<MediaItem> load_media(const std::string& path) {
  TRIPTYCH_ASSIGN_OR_RETURN(std::string bytes, read_file(path, uint64_t{256} << 20));
  return MediaItem{Modality::kImage, path, std::make_shared<const std::string>(std::move(bytes))};
}

RequestMessage user_message(const std::vector<size_t>& media, std::string text) {
  RequestMessage message{"user", {}};
  for (size_t index : media) message.parts.push_back({{}, index});
  message.parts.push_back({std::move(text), std::nullopt});
  return message;
}

SamplingParams default_sampling(const ModelSpec& spec) {
  SamplingParams out;
  const GenerationDefaults& d = spec.generation;
  if (d.do_sample) {
    out.temperature = d.temperature.value_or(1.0);
    out.top_k = d.top_k.value_or(50);  // transformers' own default when sampling
    out.top_p = d.top_p.value_or(1.0);
    out.min_p = d.min_p.value_or(0.0);
  }
  out.repetition_penalty = d.repetition_penalty.value_or(1.0);
  return out;
}

}  // namespace triptych::cli
