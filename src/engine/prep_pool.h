#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/host_budget.h"
#include "observe/trace_writer.h"
#include "request/request_preparer.h"

namespace triptych {

struct PrepLimits {
  int threads = 2;            ///< at least 1, for media; text has its own
  size_t max_requests = 256;  ///< waiting or in preparation
  size_t max_open = 1024;     ///< from submit until they end: a step looks at each of them
  /// Of all requests from submit until they end: by RequestCost, then what is left once prepared.
  uint64_t max_host_bytes = uint64_t{2} << 30;
};

/// A request on its way through preparation.
struct PrepJob {
  uint64_t id = 0;
  Request request;
  uint32_t tenant = 0;
  /// PrepContext::begin; asked for the first time before the preparation begins.
  std::function<bool(PrepStage)> begin;
  /// Called once, on a thread of the pool, unless `begin` or forget() came before.
  std::function<void(Result<PreparedRequest>, HostBudget::Share)> done;
};

/// The stage of a request's timeline.
inline Stage stage_of(PrepStage stage) {
  return stage == PrepStage::kDecode ? Stage::kMediaDecode : Stage::kProcess;
}

/// Where the pool's threads write what they do, and the clock they read for it.
struct PrepTrace {
  TraceWriter* writer = nullptr;  ///< outlives the pool; null: nothing is traced
  std::function<double()> now_ms;
};

/// Prepares requests on threads of its own, bounded in number and bytes. Requests without media
/// have a thread that never touches a picture, so no picture holds up a text.
class PrepPool {
 public:
  /// `host` outlives the pool.
  PrepPool(std::shared_ptr<const RequestPreparer> preparer, const PrepLimits& limits,
           HostBudget& host, PrepTrace trace);
  /// Drops the requests that still wait.
  ~PrepPool();

  /// Costs the request by its headers and queues it. kResourceExhausted when the queue or the host
  /// memory is full, or the caller's fault.
  Status submit(PrepJob job);
  /// Drops a request that still waits: it is never prepared.
  void forget(uint64_t id);
  /// How often the queue was full.
  int64_t n_refused() const { return n_refused_; }

 private:
  struct Queued {
    PrepJob job;
    HostBudget::Share host;
  };

  void work(std::deque<Queued>& queue, const std::string& name);
  std::optional<Result<PreparedRequest>> prepare(PrepJob& job, ThreadPool& own) const;

  std::shared_ptr<const RequestPreparer> preparer_;
  const PrepLimits limits_;
  HostBudget* host_;
  const PrepTrace trace_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Queued> text_;
  std::deque<Queued> media_;
  size_t n_requests_ = 0;
  std::atomic<int64_t> n_refused_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace triptych
