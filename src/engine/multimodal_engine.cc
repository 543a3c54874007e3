#include "engine/multimodal_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace triptych {
namespace {

// A step that did nothing while sequences wait is asked again after this long.
constexpr std::chrono::milliseconds kIdleStep{1};

// While requests with a time limit are being prepared the clock is asked at least this often.
constexpr double kExpiryCheckMs = 10;

Timeline begin_timeline(double now_ms, double fetch_ms) {
  Timeline out{{fetch_ms > 0 ? Stage::kFetch : Stage::kQueue, now_ms - fetch_ms}, now_ms};
  out.clock.enter(Stage::kQueue, now_ms);
  return out;
}

}  // namespace

MultiModalEngine::MultiModalEngine(std::unique_ptr<Engine> engine,
                                   std::shared_ptr<const RequestPreparer> preparer,
                                   const PrepLimits& limits)
    : engine_(std::move(engine)),
      max_open_(limits.max_open),
      host_(limits.max_host_bytes),
      prep_(std::make_unique<PrepPool>(
          std::move(preparer), limits, host_,
          PrepTrace{engine_->trace(), [this] { return engine_->now_ms(); }})) {
  status_ = status_now();
  thread_ = std::thread([this] { run(); });
}

// The engine's thread goes first: it ends all streams at once, whatever is still being prepared.
// What the preparers hand over behind that is dropped with arrivals_.
MultiModalEngine::~MultiModalEngine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  thread_.join();
  prep_.reset();
}

Result<std::shared_ptr<TokenStream>> MultiModalEngine::submit(Request request,
                                                              const SubmitOptions& options,
                                                              std::shared_ptr<EventSignal> signal) {
  TRIPTYCH_RETURN_IF_ERROR(validate(request.sampling));
  if (signal == nullptr) signal = std::make_shared<EventSignal>();
  std::shared_ptr<TokenStream> stream;
  {
    const std::lock_guard lock(mutex_);
    TRIPTYCH_RETURN_IF_ERROR(status_.failure);
    if (draining_) return Status(StatusCode::kUnavailable, "the engine takes no more requests");
    if (open_.size() >= max_open_) {
      ++n_refused_;
      return resource_exhausted(
          fmt::format("{} requests wait or are in work, the limit; try again later", open_.size()));
    }
    stream = std::make_shared<TokenStream>(next_id_++, std::move(signal));
    Open& open = open_[stream->id()];
    open = {.stream = stream,
            .options = options,
            .timeline = begin_timeline(engine_->now_ms(), options.fetch_ms),
            .n_choices = static_cast<uint32_t>(request.sampling.n)};
    next_expiry_ms_ = std::min(next_expiry_ms_, open.expires_ms());
  }
  if (options.deadline_ms > 0) work_.notify_all();
  const uint64_t id = stream->id();
  const auto done = [this, id](Result<PreparedRequest> prepared, HostBudget::Share host) {
    {
      const std::lock_guard lock(mutex_);
      const auto open = open_.find(id);
      if (open == open_.end()) return;  // it ended while it was prepared
      open->second.timeline.clock.enter(Stage::kWait, engine_->now_ms());
      arrivals_.push_back({id, std::move(prepared), std::move(host)});
    }
    work_.notify_all();
  };
  const Status status =
      prep_->submit({.id = id,
                     .request = std::move(request),
                     .tenant = options.tenant,
                     .begin = [this, id](PrepStage stage) { return begin(id, stage); },
                     .done = done});
  if (!status.is_ok()) {
    const std::lock_guard lock(mutex_);
    open_.erase(id);
    if (open_.empty()) idle_.notify_all();
    return status;
  }
  return stream;
}

void MultiModalEngine::cancel(uint64_t id) {
  {
    const std::lock_guard lock(mutex_);
    cancels_.push_back(id);
  }
  work_.notify_all();
}

EngineStatus MultiModalEngine::snapshot() const {
  const std::lock_guard lock(mutex_);
  EngineStatus out = status_;
  out.host_bytes = host_.in_use();
  out.refused = {n_refused_ + prep_->n_refused(), host_.n_refused()};
  if (draining_) out.health = EngineHealth::kDraining;
  if (!out.failure.is_ok()) out.health = EngineHealth::kFailed;
  for (const auto& [id, request] : open_) out.n_preparing += request.sequence == 0;
  return out;
}

void MultiModalEngine::drain() {
  std::unique_lock lock(mutex_);
  draining_ = true;
  idle_.wait(lock, [&] { return open_.empty(); });
}

void MultiModalEngine::run() {
  bool did_something = true;
  for (;;) {
    std::vector<Arrival> arrivals;
    {
      std::unique_lock lock(mutex_);
      wait_for_work(lock, did_something);
      if (stopping_) break;
      arrivals.swap(arrivals_);
      take_cancels();
      end_expired();
    }
    for (Arrival& arrival : arrivals) start(std::move(arrival));
    route(engine_->step());
    did_something = engine_->did_something();
  }
  {
    const std::lock_guard lock(mutex_);
    cancels_.clear();
    for (const auto& [id, request] : open_) cancels_.push_back(id);
    take_cancels();
  }
  route(engine_->step());  // ends what take_cancels left to the engine
}

void MultiModalEngine::wait_for_work(std::unique_lock<std::mutex>& lock, bool did_something) {
  const auto ready = [&] { return stopping_ || !arrivals_.empty() || !cancels_.empty(); };
  if (!engine_->idle()) {
    if (!did_something) work_.wait_for(lock, kIdleStep, ready);
    return;
  }
  // A request with a time limit may come in meanwhile, so the limit is looked at again each time.
  while (!ready() && engine_->now_ms() < next_expiry_ms_) {
    if (next_expiry_ms_ == kNever) {
      work_.wait(lock);
    } else {
      const double left_ms = std::min(next_expiry_ms_ - engine_->now_ms(), kExpiryCheckMs);
      work_.wait_for(lock, std::chrono::duration<double, std::milli>(left_ms));
    }
  }
}

/// Whether preparing the request is still worth it. Called by the threads of the pool.
bool MultiModalEngine::begin(uint64_t id, PrepStage stage) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(id);
  if (stopping_ || found == open_.end()) return false;
  const double now_ms = engine_->now_ms();
  if (now_ms >= found->second.expires_ms()) return false;  // end_expired() will say so
  found->second.timeline.clock.enter(stage_of(stage), now_ms);
  return true;
}

void MultiModalEngine::take_cancels() {
  for (const uint64_t id : std::exchange(cancels_, {})) {
    const auto found = open_.find(id);
    if (found == open_.end()) continue;
    if (found->second.sequence != 0) {
      engine_->cancel(found->second.sequence);
      continue;
    }
    prep_->forget(id);
    end(found, FinishReason::kCancelled, Status::ok());
  }
}

/// Ends requests whose time is up before they reached the engine; those in it are its own affair.
void MultiModalEngine::end_expired() {
  const double now_ms = engine_->now_ms();
  if (now_ms < next_expiry_ms_) return;
  next_expiry_ms_ = kNever;
  for (auto it = open_.begin(); it != open_.end();) {
    const Open& request = it->second;
    if (request.sequence != 0 || now_ms < request.expires_ms()) {
      if (request.sequence == 0) {
        next_expiry_ms_ = std::min(next_expiry_ms_, request.expires_ms());
      }
      ++it;
      continue;
    }
    prep_->forget(it->first);
    it =
        end(it, FinishReason::kError,
            Status(StatusCode::kDeadlineExceeded,
                   fmt::format("the request waited or was prepared for {:.0f} ms, its deadline is "
                               "{:.0f} ms",
                               now_ms - request.timeline.arrival_ms, request.options.deadline_ms)));
  }
}

/// Requests are taken out of `open_` by this thread alone, so `found` stays.
void MultiModalEngine::start(Arrival arrival) {
  std::unique_lock lock(mutex_);
  const auto found = open_.find(arrival.id);
  if (found == open_.end()) return;  // it ended while it was prepared
  Open& request = found->second;
  lock.unlock();
  const Result<uint64_t> sequence =
      arrival.prepared.is_ok()
          ? engine_->submit(std::move(*arrival.prepared), request.options, request.timeline)
          : arrival.prepared.status();
  lock.lock();
  if (!sequence.is_ok()) {
    end(found, FinishReason::kError, sequence.status());
    return;
  }
  request.sequence = *sequence;
  request.host = std::move(arrival.host);
  by_sequence_[*sequence] = arrival.id;
}

/// The end of a request that no step has seen: one event for each of its answers.
MultiModalEngine::Requests::iterator MultiModalEngine::end(Requests::iterator request,
                                                           FinishReason reason, Status error) {
  const uint32_t n = request->second.n_choices;
  Timeline& timeline = request->second.timeline;
  timeline.clock.end(engine_->now_ms());
  for (uint32_t choice = 0; choice < n; ++choice) {
    TokenEvent last{.sequence = request->first, .finish = reason, .error = error, .choice = choice};
    push(request->second,
         {.token = std::move(last), .ends_request = choice + 1 == n, .timeline = timeline});
  }
  request->second.stream->signal()->raise();
  const auto next = open_.erase(request);
  if (open_.empty()) idle_.notify_all();
  return next;
}

void MultiModalEngine::push(const Open& request, SequenceEvent event) const {
  if (engine_->trace() != nullptr && event.timeline) {
    engine_->trace()->answer(request.stream->id(), event.token.choice, *event.timeline,
                             finish_reason_name(event.token.finish));
  }
  request.stream->push(std::move(event));
}

void MultiModalEngine::route(std::vector<SequenceEvent> events) {
  EngineStatus status = status_now();
  std::set<std::shared_ptr<EventSignal>> signals;
  std::unique_lock lock(mutex_);
  status_ = std::move(status);
  for (SequenceEvent& event : events) {
    const auto number = by_sequence_.find(event.token.sequence);
    const auto found = open_.find(number->second);
    event.token.sequence = number->second;
    const bool last = event.ends_request;
    signals.insert(found->second.stream->signal());
    push(found->second, std::move(event));
    if (!last) continue;
    open_.erase(found);
    by_sequence_.erase(number);
  }
  if (open_.empty()) idle_.notify_all();
  lock.unlock();
  // Only now, when all is there: a reader that runs takes a core from the next step.
  for (const std::shared_ptr<EventSignal>& signal : signals) signal->raise();
}

EngineStatus MultiModalEngine::status_now() const {
  EngineStatus out;
  out.failure = engine_->failure();
  engine_->count(out.n_waiting, out.n_running);
  const PagePool& pages = engine_->runner().pages();
  out.free_pages = pages.n_free();
  out.evictable_pages = pages.n_reclaimable();
  out.total_pages = pages.n_pages();
  out.step_error_p95 = engine_->predictors().cost.p95_relative_error();
  const SampleWindow& gauge = engine_->encode_to_decode_ms();
  const bool same = gauge.n_seen() == status_.encode_to_decode_ms.n_seen;
  out.encode_to_decode_ms = same ? status_.encode_to_decode_ms : gauge.summary();
  out.prefix = engine_->prefix_index().stats();
  out.encoder = engine_->encoder_cache().stats();
  out.counts = engine_->counts();
  return out;
}

}  // namespace triptych
