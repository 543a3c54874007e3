#include "engine/prep_pool.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <exception>

namespace triptych {
namespace {

/// What a prepared request keeps until it ends: its pixels, which a preempted sequence may have to
/// encode again, and its ids.
uint64_t bytes_of(const PreparedRequest& request) {
  uint64_t out = request.ids.size() * sizeof(int32_t);
  for (const auto& media : request.media) out += static_cast<uint64_t>(media->pixels.n_bytes());
  return out;
}

/// Where cores are short the calling thread leaves them to the engine: a picture has seconds until
/// it is due, a token has milliseconds. (Linux: a thread has a priority of its own.)
void give_way() { (void)setpriority(PRIO_PROCESS, 0, 10); }

}  // namespace

PrepPool::PrepPool(std::shared_ptr<const RequestPreparer> preparer, const PrepLimits& limits,
                   HostBudget& host, PrepTrace trace)
    : preparer_(std::move(preparer)), limits_(limits), host_(&host), trace_(std::move(trace)) {
  threads_.emplace_back([this] { work(text_, "prepare text"); });
  for (int i = 0; i < std::max(1, limits_.threads); ++i) {
    threads_.emplace_back([this, i] {
      give_way();
      work(media_, fmt::format("prepare media {}", i));
    });
  }
}

PrepPool::~PrepPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Status PrepPool::submit(PrepJob job) {
  TRIPTYCH_ASSIGN_OR_RETURN(const RequestCost cost, preparer_->cost(job.request));
  TRIPTYCH_ASSIGN_OR_RETURN(HostBudget::Share host, host_->take(cost.host_bytes));
  {
    const std::lock_guard lock(mutex_);
    if (n_requests_ >= limits_.max_requests) {
      ++n_refused_;
      return resource_exhausted(fmt::format(
          "{} requests are waiting to be prepared, the limit; try again later", n_requests_));
    }
    ++n_requests_;
    (cost.n_media > 0 ? media_ : text_).push_back({std::move(job), std::move(host)});
  }
  ready_.notify_all();
  return Status::ok();
}

void PrepPool::forget(uint64_t id) {
  const std::lock_guard lock(mutex_);
  for (std::deque<Queued>* queue : {&text_, &media_}) {
    n_requests_ -= std::erase_if(*queue, [&](const Queued& work) { return work.job.id == id; });
  }
}

void PrepPool::work(std::deque<Queued>& queue, const std::string& name) {
  ThreadPool own(1);
  const TraceWriter::Track track = trace_.writer != nullptr ? trace_.writer->add_track(name) : 0;
  for (;;) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return stopping_ || !queue.empty(); });
    if (stopping_) return;
    Queued next = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    const auto n_media = static_cast<double>(next.job.request.media.size());
    const double start_ms = trace_.writer != nullptr ? trace_.now_ms() : 0;
    std::optional<Result<PreparedRequest>> prepared = prepare(next.job, own);
    next.job.request = {};
    if (trace_.writer != nullptr && prepared) {
      trace_.writer->slice(track, fmt::format("request {}", next.job.id), start_ms, trace_.now_ms(),
                           {{"media", n_media}});
    }
    lock.lock();
    --n_requests_;
    lock.unlock();
    if (!prepared) continue;
    if (prepared->is_ok()) next.host.shrink(bytes_of(**prepared));
    next.job.done(std::move(*prepared), std::move(next.host));
  }
}

/// Nothing when nobody waits for the request. A fault of the preparer ends its request alone.
std::optional<Result<PreparedRequest>> PrepPool::prepare(PrepJob& job, ThreadPool& own) const {
  if (!job.begin(PrepStage::kProcess)) return std::nullopt;
  try {
    return preparer_->prepare(job.request, {own, job.tenant, job.begin});
  } catch (...) {
    return status_of_exception("preparing the request");
  }
}

}  // namespace triptych
