#include "engine/multimodal_engine.h"

namespace triptych {
namespace {

// A step that did nothing while sequences wait is asked again after this long.
constexpr std::chrono::milliseconds kIdleStep{1};

/// The end of a request that no step has seen, one for all its answers.
SequenceEvent ending(uint64_t id, FinishReason reason, Status error) {
  return {.token = {.sequence = id, .finish = reason, .error = std::move(error)},
          .usage = {},
          .ends_request = true};
}

}  // namespace

MultiModalEngine::MultiModalEngine(std::unique_ptr<Engine> engine,
                                   std::shared_ptr<const RequestPreparer> preparer,
                                   const PrepLimits& limits)
    : engine_(std::move(engine)),
      prep_(std::make_unique<PrepPool>(std::move(preparer), limits)),
      thread_([this] { run(); }) {}

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
                                                              const SubmitOptions& options) {
  std::shared_ptr<TokenStream> stream;
  {
    const std::lock_guard lock(mutex_);
    if (draining_) return Status(StatusCode::kUnavailable, "the engine takes no more requests");
    stream = std::make_shared<TokenStream>(next_id_++);
    open_[stream->id()] = {stream, 0};
  }
  const uint64_t id = stream->id();
  const Status status =
      prep_->submit(std::move(request), [this, id, options](Result<PreparedRequest> prepared) {
        {
          const std::lock_guard lock(mutex_);
          arrivals_.push_back({id, std::move(prepared), options});
        }
        work_.notify_all();
      });
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
      const auto ready = [&] { return stopping_ || !arrivals_.empty() || !cancels_.empty(); };
      if (engine_->idle()) {
        work_.wait(lock, ready);
      } else if (!did_something) {
        work_.wait_for(lock, kIdleStep, ready);
      }
      if (stopping_) break;
      arrivals.swap(arrivals_);
      take_cancels();
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

void MultiModalEngine::take_cancels() {
  for (const uint64_t id : std::exchange(cancels_, {})) {
    const auto found = open_.find(id);
    if (found == open_.end()) continue;
    if (found->second.sequence != 0) {
      engine_->cancel(found->second.sequence);
      continue;
    }
    found->second.stream->push(ending(id, FinishReason::kCancelled, Status::ok()));
    open_.erase(found);
  }
  if (open_.empty()) idle_.notify_all();
}

void MultiModalEngine::start(Arrival arrival) {
  {
    const std::lock_guard lock(mutex_);
    if (!open_.contains(arrival.id)) return;  // cancelled while it was prepared
  }
  if (!arrival.prepared.is_ok()) {
    const bool stopping = arrival.prepared.status().code() == StatusCode::kCancelled;
    return stopping ? end(arrival.id, FinishReason::kCancelled, Status::ok())
                    : end(arrival.id, FinishReason::kError, arrival.prepared.status());
  }
  const Result<uint64_t> sequence = engine_->submit(std::move(*arrival.prepared), arrival.options);
  if (!sequence.is_ok()) return end(arrival.id, FinishReason::kError, sequence.status());
  by_sequence_[*sequence] = arrival.id;
  const std::lock_guard lock(mutex_);
  open_.at(arrival.id).sequence = *sequence;
}

void MultiModalEngine::end(uint64_t id, FinishReason reason, Status error) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(id);
  found->second.stream->push(ending(id, reason, std::move(error)));
  open_.erase(found);
  if (open_.empty()) idle_.notify_all();
}

void MultiModalEngine::route(std::vector<SequenceEvent> events) {
  const EngineStatus status = status_now();
  const std::lock_guard lock(mutex_);
  status_ = status;
  for (SequenceEvent& event : events) {
    const auto number = by_sequence_.find(event.token.sequence);
    const auto found = open_.find(number->second);
    event.token.sequence = number->second;
    const bool last = event.ends_request;
    found->second.stream->push(std::move(event));
    if (!last) continue;
    open_.erase(found);
    by_sequence_.erase(number);
  }
  if (open_.empty()) idle_.notify_all();
}

EngineStatus MultiModalEngine::status_now() const {
  EngineStatus out;
  engine_->count(out.n_waiting, out.n_running);
  const PagePool& pages = engine_->runner().pages();
  out.free_pages = pages.n_free();
  out.evictable_pages = pages.n_reclaimable();
  out.total_pages = pages.n_pages();
  out.step_error_p95 = engine_->predictors().cost.p95_relative_error();
  out.prefix = engine_->prefix_index().stats();
  out.encoder = engine_->encoder_cache().stats();
  return out;
}

}  // namespace triptych
