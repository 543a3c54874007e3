#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/status.h"
#include "media/sandbox/worker_process.h"
#include "media/sandbox/zygote.h"

namespace triptych::sandbox {

/// A fixed number of workers, each with at most one picture. One that dies is replaced at once: by
/// whoever has it, else by the pool's own thread.
class WorkerPool {
 public:
  /// `zygote` outlives the pool. The error is that of the first worker that did not start.
  static Result<std::unique_ptr<WorkerPool>> start(Zygote& zygote, int n_workers);
  /// Nobody may hold a lease any more. The workers end when they see their connections closed.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// A place in the pool that one thread has for itself.
  class Lease {
   public:
    Lease(WorkerPool& pool, size_t place) : pool_(&pool), place_(place) {}
    ~Lease() { pool_->give_back(place_); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    /// Its worker; started now when it could not be started before.
    Result<WorkerProcess*> worker();
    /// Ends its worker, if it still lives, and starts another. Gives the wait status of the old
    /// one.
    Result<int> replace() { return pool_->replace(place_); }

   private:
    WorkerPool* pool_;
    size_t place_;
  };
  /// Waits for a free place.
  Lease lease();

  /// Process ids of the workers that live.
  std::vector<pid_t> pids() const;

 private:
  struct Place {
    bool taken = false;
    std::unique_ptr<WorkerProcess> worker;  ///< changed by who has the place, under the mutex
  };

  explicit WorkerPool(Zygote& zygote, int n_workers)
      : zygote_(&zygote), places_(static_cast<size_t>(n_workers)) {}
  Status begin();
  Status start_worker(size_t place);
  Result<int> replace(size_t place);
  void give_back(size_t place);
  /// Replaces idle workers that die.
  void keep();
  void keep(size_t place);

  Zygote* zygote_;
  mutable std::mutex mutex_;
  std::condition_variable free_;
  std::vector<Place> places_;
  Descriptor deaths_;  // an epoll of the workers' sockets, which tell of nothing but a hang-up
  Descriptor stop_;
  std::thread keeper_;
};

}  // namespace triptych::sandbox
