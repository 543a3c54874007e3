#include "engine/prep_pool.h"

#include <fmt/format.h>

#include <algorithm>

namespace triptych {

PrepPool::PrepPool(std::shared_ptr<const RequestPreparer> preparer, const PrepLimits& limits)
    : preparer_(std::move(preparer)), limits_(limits) {
  threads_.emplace_back([this] { work(text_); });
  for (int i = 0; i < std::max(1, limits_.threads); ++i)
    threads_.emplace_back([this] { work(media_); });
}

PrepPool::~PrepPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  for (std::deque<Job>* queue : {&text_, &media_}) {
    for (Job& job : *queue) job.done(Status(StatusCode::kCancelled, "the engine is stopping"));
  }
}

Status PrepPool::submit(Request request, Done done) {
  TRIPTYCH_ASSIGN_OR_RETURN(const RequestCost cost, preparer_->cost(request));
  const bool has_media = cost.n_media > 0;
  {
    const std::lock_guard lock(mutex_);
    if (n_requests_ >= limits_.max_requests) {
      return resource_exhausted(fmt::format(
          "{} requests are waiting to be prepared, the limit; try again later", n_requests_));
    }
    if (cost.host_bytes > limits_.max_host_bytes - host_bytes_) {
      return resource_exhausted(
          fmt::format("the request's media take {} MiB of host memory, {} of {} MiB are in use; "
                      "try again later",
                      cost.host_bytes >> 20, host_bytes_ >> 20, limits_.max_host_bytes >> 20));
    }
    ++n_requests_;
    host_bytes_ += cost.host_bytes;
    (has_media ? media_ : text_).push_back({std::move(request), cost.host_bytes, std::move(done)});
  }
  ready_.notify_all();
  return Status::ok();
}

void PrepPool::work(std::deque<Job>& queue) {
  ThreadPool own(1);
  for (;;) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return stopping_ || !queue.empty(); });
    if (stopping_) return;
    Job job = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    Result<PreparedRequest> prepared = preparer_->prepare(job.request, own);
    lock.lock();
    --n_requests_;
    host_bytes_ -= job.host_bytes;
    lock.unlock();
    job.done(std::move(prepared));
  }
}

}  // namespace triptych
