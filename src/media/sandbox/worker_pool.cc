#include "media/sandbox/worker_pool.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/log.h"

namespace triptych::sandbox {
namespace {

// How often a worker is started in the place of another before that is left to the next picture.
constexpr int kStarts = 3;
constexpr uint64_t kStop = std::numeric_limits<uint64_t>::max();

/// `events` 0: only that the other end is gone, once.
bool watch(int epoll, int fd, uint64_t name, uint32_t events) {
  epoll_event event{};
  event.events = events | EPOLLET;
  event.data.u64 = name;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

Result<std::unique_ptr<WorkerPool>> WorkerPool::start(Zygote& zygote, int n_workers) {
  std::unique_ptr<WorkerPool> pool(new WorkerPool(zygote, n_workers));
  TRIPTYCH_RETURN_IF_ERROR(pool->begin());
  return pool;
}

Status WorkerPool::begin() {
  deaths_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  stop_ = Descriptor(::eventfd(0, EFD_CLOEXEC));
  if (!deaths_.is_open() || !stop_.is_open() ||
      !watch(deaths_.get(), stop_.get(), kStop, EPOLLIN)) {
    return resource_exhausted(
        fmt::format("the decoders cannot be watched: {}", std::strerror(errno)));
  }
  for (size_t i = 0; i < places_.size(); ++i) TRIPTYCH_RETURN_IF_ERROR(start_worker(i));
  keeper_ = std::thread([this] { keep(); });
  return Status::ok();
}

WorkerPool::~WorkerPool() {
  if (!keeper_.joinable()) return;
  (void)::eventfd_write(stop_.get(), 1);
  keeper_.join();
}

WorkerPool::Lease WorkerPool::lease() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto free = std::find_if(places_.begin(), places_.end(),
                                   [](const Place& place) { return !place.taken; });
    if (free != places_.end()) {
      free->taken = true;
      return {*this, static_cast<size_t>(free - places_.begin())};
    }
    free_.wait(lock);
  }
}

Result<WorkerProcess*> WorkerPool::Lease::worker() {
  if (pool_->places_[place_].worker == nullptr) {
    TRIPTYCH_RETURN_IF_ERROR(pool_->start_worker(place_));
  }
  return pool_->places_[place_].worker.get();
}

std::vector<pid_t> WorkerPool::pids() const {
  const std::lock_guard lock(mutex_);
  std::vector<pid_t> out;
  for (const Place& place : places_) {
    if (place.worker != nullptr) out.push_back(place.worker->pid());
  }
  return out;
}

Status WorkerPool::start_worker(size_t place) {
  TRIPTYCH_ASSIGN_OR_RETURN(std::unique_ptr<WorkerProcess> worker, WorkerProcess::start(*zygote_));
  if (!watch(deaths_.get(), worker->socket(), place, 0)) {
    (void)zygote_->end(worker->pid());
    return resource_exhausted(fmt::format("a decoder cannot be watched: {}", std::strerror(errno)));
  }
  const std::lock_guard lock(mutex_);
  places_[place].worker = std::move(worker);
  return Status::ok();
}

Result<int> WorkerPool::replace(size_t place) {
  std::unique_ptr<WorkerProcess> old;
  {
    const std::lock_guard lock(mutex_);
    old = std::move(places_[place].worker);
  }
  Result<int> wait_status = old != nullptr ? zygote_->end(old->pid()) : Result<int>(0);
  Status started = start_worker(place);
  for (int i = 1; i < kStarts && !started.is_ok(); ++i) started = start_worker(place);
  if (!started.is_ok()) log_error(started.message());  // the next picture tries again
  return wait_status;
}

void WorkerPool::give_back(size_t place) {
  {
    const std::lock_guard lock(mutex_);
    places_[place].taken = false;
  }
  free_.notify_one();
}

void WorkerPool::keep() {
  for (;;) {
    epoll_event event{};
    if (::epoll_wait(deaths_.get(), &event, 1, -1) != 1) continue;
    if (event.data.u64 == kStop) return;
    keep(static_cast<size_t>(event.data.u64));
  }
}

void WorkerPool::keep(size_t place) {
  {
    const std::lock_guard lock(mutex_);
    // Whoever has the place finds out, or the next who asks for a picture.
    if (places_[place].taken) return;
    places_[place].taken = true;
  }
  const Lease mine(*this, place);
  if (places_[place].worker == nullptr || !has_hung_up(places_[place].worker->socket())) return;
  log_warning(fmt::format("an idle decoder of pictures died of {}; it is replaced",
                          death_of(replace(place))));
}

}  // namespace triptych::sandbox
