#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace triptych {
namespace {

// What the cost model starts from, before the first step has been measured: a small machine.
constexpr double kFlopsPerMs = 100e6;  // 100 GFLOP/s
constexpr double kBytesPerMs = 20e6;   // 20 GB/s

CostPriors priors_of(const RunnerLimits& limits) {
  CostPriors out;
  out.weights_ms = limits.row_cost.bytes / kBytesPerMs;
  out.row_ms = limits.row_cost.flops / kFlopsPerMs;
  out.pair_ms = limits.pair_cost.flops / kFlopsPerMs;
  out.kv_token_ms = limits.pair_cost.bytes / kBytesPerMs;
  out.encode_gflop_ms = 1e9 / kFlopsPerMs;
  return out;
}

RecomputeCost recompute_cost_of(const RunnerLimits& limits) {
  RecomputeCost out;
  out.flops_per_token = limits.row_cost.flops;
  out.flops_per_pair = limits.pair_cost.flops;
  return out;
}

}  // namespace

/// A sequence's part of a step, with pages reserved.
struct Engine::Row {
  Sequence* sequence;
  int64_t n_rows;
  std::vector<MediaRows> media;
};

Engine::Engine(std::unique_ptr<StepRunner> runner, const EngineConfig& config, Clock now_ms)
    : runner_(std::move(runner)),
      config_(config),
      now_ms_(std::move(now_ms)),
      predictors_(priors_of(runner_->limits())),
      index_(runner_->pages(), recompute_cost_of(runner_->limits())),
      encoder_(*runner_, config.media.encoder_cache_bytes) {
  if (config_.trace != nullptr) track_ = config_.trace->add_track("engine");
}

Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::create(std::unique_ptr<StepRunner> runner,
                                               EngineConfig config, Clock now_ms) {
  const RunnerLimits& limits = runner->limits();
  SchedulerConfig& scheduler = config.scheduler;
  scheduler.step_rows = limits.step_rows;
  scheduler.max_running = limits.max_sequences;
  scheduler.chunk_rows = limits.chunk_rows;
  scheduler.min_chunk_rows = std::min(scheduler.min_chunk_rows, scheduler.chunk_rows);
  TRIPTYCH_RETURN_IF_ERROR(validate(scheduler));
  return std::unique_ptr<Engine>(new Engine(std::move(runner), config, std::move(now_ms)));
}

Result<std::unique_ptr<Engine>> Engine::load(const Checkpoint& checkpoint, const Backend& backend,
                                             const EngineOptions& options) {
  TRIPTYCH_ASSIGN_OR_RETURN(
      std::unique_ptr<ModelRunner> runner,
      ModelRunner::load(checkpoint, backend, options.settings, options.limits));
  ModelRunner* model_runner = runner.get();
  EngineConfig config = options.config;
  config.media = model_runner->plan().media;
  TRIPTYCH_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                            create(std::move(runner), std::move(config), &steady_ms));
  engine->model_runner_ = model_runner;
  return engine;
}

Stage Sequence::stage() const {
  if (!running) return Stage::kWait;
  for (const Span& span : request->spans) {
    if (needs(span) && media[span.media].features == nullptr) return Stage::kEncode;
  }
  return usage.drawn_tokens == 0 || n_tokens() - n_cached() > 1 ? Stage::kPrefill : Stage::kDecode;
}

Sequence* Engine::find(uint64_t id) {
  const auto it = sequences_.find(id);
  return it == sequences_.end() ? nullptr : it->second.get();
}

void Engine::cancel(uint64_t request) {
  for (const auto& [id, s] : sequences_) s->cancelled = s->cancelled || s->group == request;
}

void Engine::count(int64_t& n_waiting, int64_t& n_running) const {
  n_waiting = n_running = 0;
  for (const auto& [id, s] : sequences_) ++(s->running ? n_running : n_waiting);
}

std::vector<SequenceEvent> Engine::step() {
  Events events;
  end_cancelled(events);
  did_something_ = !events.empty();
  if (sequences_.empty()) return events;
  const auto mark = [this] { return config_.trace != nullptr ? now_ms_() : 0; };
  StepTimes times{.plan = mark()};
  const Status caught_up = catch_up();
  const Result<Snapshot> seen = caught_up.is_ok() ? snapshot() : caught_up;
  if (!seen.is_ok()) {  // a table that cannot be described is our fault: nobody can go on
    fail_all(seen.status(), nullptr, events);
    return events;
  }
  const StepPlan plan = plan_step(*seen, config_.scheduler, predictors_);
  fairness_ = plan.fairness;
  did_something_ = did_something_ || !plan.does_nothing();
  start(plan, events);
  times.encode = mark();
  encode(plan, events);
  times.forward = mark();
  forward(plan, events);
  times.end = mark();
  if (config_.trace != nullptr && did_something_) trace_step(plan, times);
  if (config_.check_invariants) {
    if (const Status kept = check_invariants(); !kept.is_ok()) fail_all(kept, &plan, events);
  }
  return events;
}

void Engine::end_cancelled(Events& events) {
  std::vector<Sequence*> ending;
  for (const auto& [id, s] : sequences_) {
    if (s->cancelled) ending.push_back(s.get());
  }
  for (Sequence* s : ending) finish(*s, {.finish = FinishReason::kCancelled}, events);
}

/// Of several that came with the same beginning at the same time one is the first to have computed
/// it; the others go on from there.
Status Engine::catch_up() {
  std::vector<MediaId> given_up;
  for (const auto& [id, s] : sequences_) {
    if (!s->running || s->stage() == Stage::kDecode) continue;
    TRIPTYCH_ASSIGN_OR_RETURN(const int64_t n_found, s->kv.n_cached(s->ids));
    const int64_t n_own = s->n_cached();
    if (n_found <= n_own) continue;
    s->kv.release();
    TRIPTYCH_RETURN_IF_ERROR(s->kv.adopt(s->ids).status());
    for (const Span& span : s->request->spans) {
      if (span.position + span.length <= n_own || s->needs(span)) continue;
      MediaUse& use = s->media[span.media];
      if (use.features == nullptr && encoder_.leave(id, use)) given_up.push_back(use.feature);
      use.features = nullptr;
      s->timeline.media_in_prefix += s->usage.preemptions == 0;
    }
    if (s->usage.preemptions == 0) {
      s->timeline.cached_tokens += n_found - n_own;
      counts_.prefix_tokens_found += n_found - n_own;
    }
    note_stage(*s);
  }
  for (const MediaId& feature : given_up) ask_again(feature);
  return Status::ok();
}

/// Ends, preempts and admits as the plan says.
void Engine::start(const StepPlan& plan, Events& events) {
  for (const EndedSequence& ended : plan.ended) {
    Sequence* s = find(ended.id);
    if (s == nullptr) continue;
    const bool late = ended.reason == EndReason::kExpired || ended.reason == EndReason::kHopeless;
    fail(*s,
         Status(late ? StatusCode::kDeadlineExceeded : StatusCode::kOutOfRange,
                triptych::describe(ended)),
         events);
  }
  for (const uint64_t id : plan.preempt) {
    if (Sequence* s = find(id); s != nullptr) preempt(*s);
  }
  for (const uint64_t id : plan.admit) {
    Sequence* s = find(id);
    if (s == nullptr) continue;
    if (Status status = admit(*s); !status.is_ok()) fail(*s, std::move(status), events);
  }
}

Status Engine::admit(Sequence& sequence) {
  Sequence& s = sequence;
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t n_found, s.kv.adopt(s.ids));
  s.running = true;
  int64_t n_in_prefix = 0;
  int64_t n_in_encoder = 0;
  for (const Span& span : s.request->spans) {
    n_in_prefix += !s.needs(span);
    if (!s.needs(span)) continue;
    encoder_.want(s.id, s.media[span.media]);
    n_in_encoder += s.media[span.media].features != nullptr;
  }
  if (s.choice == 0 && s.usage.preemptions == 0) {  // later on it would find its own work
    s.timeline.cached_tokens = n_found;
    s.timeline.media_in_prefix = n_in_prefix;
    s.timeline.media_in_encoder = n_in_encoder;
    if (config_.prefix_cache) counts_.prefix_tokens_asked += s.n_prompt();
    counts_.prefix_tokens_found += n_found;
  }
  note_stage(s);
  return Status::ok();
}

void Engine::note_stage(Sequence& sequence) {
  sequence.timeline.clock.enter(sequence.stage(), now_ms_());
}

/// Gives the pages back. What was drawn stays, and its keys and values are computed again when the
/// sequence comes back.
void Engine::preempt(Sequence& sequence) {
  sequence.kv.release();
  sequence.running = false;
  sequence.encoded_ms = kNotYet;
  ++sequence.usage.preemptions;
  ++counts_.preemptions;
  note_stage(sequence);
  std::vector<MediaId> given_up;
  for (MediaUse& use : sequence.media) {
    if (encoder_.leave(sequence.id, use)) given_up.push_back(use.feature);
    use.features = nullptr;
  }
  for (const MediaId& feature : given_up) ask_again(feature);
}

void Engine::encode(const StepPlan& plan, Events& events) {
  const double start = now_ms_();
  for (const EncodeSlice& slice : plan.encode) {
    Sequence* s = find(slice.id);
    if (s == nullptr) continue;
    MediaUse& use = s->media[s->request->spans[slice.media].media];
    if (use.features != nullptr) continue;
    const double slice_start = now_ms_();
    const MediaId feature = use.feature;
    Result<MediaFeatures> features = encoder_.run(feature, slice.n_blocks);
    s->usage.encode_ms += now_ms_() - slice_start;
    if (!features.is_ok()) {
      fail(*s, features.status(), events);
      ask_again(feature);
    } else if (*features != nullptr) {
      deliver(feature, *features);
    }
  }
  if (!plan.encode.empty()) predictors_.cost.observe(plan.encode_shape, now_ms_() - start);
}

/// Hands features to every running sequence that waits for them.
void Engine::deliver(const MediaId& feature, const MediaFeatures& features) {
  for (const auto& [id, s] : sequences_) {
    if (s->stage() != Stage::kEncode) continue;
    for (const Span& span : s->request->spans) {
      MediaUse& use = s->media[span.media];
      if (use.feature == feature && s->needs(span)) use.features = features;
    }
    if (s->stage() == Stage::kEncode) continue;
    s->encoded_ms = now_ms_();
    note_stage(*s);
  }
}

/// Whoever encoded the item gave it up: the first of those who still need it takes it on.
void Engine::ask_again(const MediaId& feature) {
  for (const auto& [id, s] : sequences_) {
    if (!s->running) continue;
    for (const Span& span : s->request->spans) {
      MediaUse& use = s->media[span.media];
      if (use.feature == feature && s->needs(span)) encoder_.want(id, use);
    }
  }
}

/// Reserves the pages of all rows of the plan. What ended while the step was prepared is left out.
std::vector<Engine::Row> Engine::reserve(const StepPlan& plan, Events& events) {
  std::vector<Row> rows;
  for (const RowSlice& slice : plan.rows) {
    Sequence* s = find(slice.id);
    if (s == nullptr || !s->running) continue;
    const int64_t end = s->n_cached() + slice.n_rows;
    if (Status status = s->kv.reserve(end); !status.is_ok()) {
      fail(*s, std::move(status), events);
      continue;
    }
    Row row{s, slice.n_rows, {}};
    bool ready = true;
    for (const Span& span : s->request->spans) {
      if (!s->needs(span) || span.position >= end) continue;
      const MediaFeatures& features = s->media[span.media].features;
      ready = ready && features != nullptr;
      if (features != nullptr) row.media.push_back({span.position, features->view()});
    }
    if (ready) rows.push_back(std::move(row));
  }
  return rows;
}

void Engine::forward(const StepPlan& plan, Events& events) {
  const std::vector<Row> rows = reserve(plan, events);
  if (rows.empty()) return;
  std::vector<SequenceStep> batch;
  std::vector<Sampler*> with_grammar;
  for (const Row& row : rows) {
    Sequence& s = *row.sequence;
    batch.push_back({.ids = std::span(s.ids).subspan(static_cast<size_t>(s.n_cached()),
                                                     static_cast<size_t>(row.n_rows)),
                     .first = s.n_cached(),
                     .pages = s.kv.pages(),
                     .page_begin = s.kv.page_begin().data(),
                     .media = row.media,
                     .wants_logits = s.n_cached() + row.n_rows == s.n_tokens()});
    if (batch.back().wants_logits && s.sampler.has_grammar()) with_grammar.push_back(&s.sampler);
  }
  masks_.begin(std::move(with_grammar));
  const double start = now_ms_();
  for (const Row& row : rows) {
    Sequence& s = *row.sequence;
    if (std::isnan(s.encoded_ms)) continue;
    encode_to_decode_ms_.add(start - s.encoded_ms);
    s.encoded_ms = kNotYet;
  }
  const Result<View> logits = runner_->forward(batch);
  const double step_ms = now_ms_() - start;
  masks_.wait();
  if (rows.size() == plan.rows.size()) predictors_.cost.observe(plan.rows_shape, step_ms);
  Status error = logits.status();
  if (error.code() == StatusCode::kInternal) error = fail_engine(error, &plan);
  int64_t next_logits = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!logits.is_ok()) {
      fail(*rows[i].sequence, error, events);
      continue;
    }
    const float* own =
        batch[i].wants_logits ? logits->f32() + next_logits++ * logits->shape[1] : nullptr;
    commit(rows[i], own, step_ms, events);
  }
}

void Engine::commit(const Row& row, const float* logits, double step_ms, Events& events) {
  Sequence& s = *row.sequence;
  const bool in_prompt = s.n_cached() < s.n_prompt();
  (in_prompt ? s.usage.prefill_ms : s.usage.decode_ms) += step_ms;
  Status status = s.kv.commit(row.n_rows);
  if (status.is_ok() && config_.prefix_cache) status = s.kv.publish(s.ids);
  if (!status.is_ok()) return fail(s, std::move(status), events);
  for (const Span& span : s.request->spans) {
    if (!s.needs(span)) s.media[span.media].features = nullptr;
  }
  if (logits == nullptr) return;
  const std::span row_logits(logits, static_cast<size_t>(runner_->limits().vocab_size));
  const std::vector<Sequence*> others = fork(s, events);
  draw(s, row_logits, events);
  for (Sequence* other : others) draw(*other, row_logits, events);
}

void Engine::draw(Sequence& sequence, std::span<const float> logits, Events& events) {
  Result<DrawnToken> drawn = sequence.sampler.sample(logits, sampler_scratch_);
  Status status = drawn.is_ok() ? take_token(sequence, std::move(*drawn), events) : drawn.status();
  if (!status.is_ok()) fail(sequence, std::move(status), events);
}

/// The sequence is gone when the token ends it; not after an error.
Status Engine::take_token(Sequence& sequence, DrawnToken drawn, Events& events) {
  Sequence& s = sequence;
  ++s.usage.drawn_tokens;
  s.last_token_ms = now_ms_();
  if (std::isnan(s.first_token_ms)) s.first_token_ms = s.last_token_ms;
  if (s.sampler.ends(drawn.token)) {
    finish(s, {.finish = FinishReason::kStop}, events);
    return Status::ok();
  }
  TRIPTYCH_RETURN_IF_ERROR(s.sampler.accept(drawn.token));
  ++s.usage.completion_tokens;
  TokenEvent event{.token = drawn.token, .logprobs = std::move(drawn.logprobs)};
  if (s.sampler.finished()) event.finish = FinishReason::kStop;
  if (event.finish == FinishReason::kNone && s.usage.completion_tokens >= s.max_new) {
    event.finish = FinishReason::kLength;
  }
  if (event.finish != FinishReason::kNone) {
    finish(s, std::move(event), events);
    return Status::ok();
  }
  s.ids.push_back(drawn.token);
  TRIPTYCH_RETURN_IF_ERROR(s.kv.extend(1));
  note_stage(s);
  emit(s, std::move(event), events);
  return Status::ok();
}

void Engine::emit(const Sequence& sequence, TokenEvent event, Events& events) {
  event.sequence = sequence.group;
  event.choice = sequence.choice;
  events.push_back({std::move(event), sequence.usage});
}

int64_t Engine::n_open(uint64_t group) const {
  return std::count_if(sequences_.begin(), sequences_.end(),
                       [&](const auto& entry) { return entry.second->group == group; });
}

void Engine::finish(Sequence& sequence, TokenEvent last, Events& events) {
  if (sequence.usage.drawn_tokens > 0) {
    predictors_.lengths.observe(sequence.options.service_class, sequence.usage.drawn_tokens,
                                last.finish == FinishReason::kStop);
  }
  sequence.timeline.clock.end(now_ms_());
  // Answers that have not begun share the end of the one that was to start them.
  for (; sequence.n_forks > 0; --sequence.n_forks) {
    events.push_back({last, sequence.usage, false, sequence.timeline});
    events.back().token.sequence = sequence.group;
    events.back().token.choice = sequence.n_forks;
  }
  emit(sequence, std::move(last), events);
  events.back().timeline = std::move(sequence.timeline);
  std::vector<MediaId> given_up;
  for (const MediaUse& use : sequence.media) {
    if (encoder_.leave(sequence.id, use)) given_up.push_back(use.feature);
  }
  const uint64_t group = sequence.group;
  sequences_.erase(sequence.id);
  events.back().ends_request = n_open(group) == 0;
  for (const MediaId& feature : given_up) ask_again(feature);
}

}  // namespace triptych
