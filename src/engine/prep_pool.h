#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "request/request_preparer.h"

namespace triptych {

struct PrepLimits {
  int threads = 2;                              ///< at least 1, for media; text has its own
  size_t max_requests = 256;                    ///< waiting or in preparation
  uint64_t max_host_bytes = uint64_t{2} << 30;  ///< of their media, by RequestCost
};

/// Prepares requests on threads of its own, bounded in number and bytes. Requests without media
/// have a thread that never touches a picture, so no picture holds up a text.
class PrepPool {
 public:
  /// Called once for each request that was taken, on a thread of the pool.
  using Done = std::function<void(Result<PreparedRequest>)>;

  PrepPool(std::shared_ptr<const RequestPreparer> preparer, const PrepLimits& limits);
  /// Requests that still wait end with kCancelled.
  ~PrepPool();

  /// Costs the request by its headers and queues it. kResourceExhausted when the queue is full, or
  /// the caller's fault; `done` is not called then.
  Status submit(Request request, Done done);

 private:
  struct Job {
    Request request;
    uint64_t host_bytes = 0;
    Done done;
  };

  void work(std::deque<Job>& queue);

  std::shared_ptr<const RequestPreparer> preparer_;
  const PrepLimits limits_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Job> text_;
  std::deque<Job> media_;
  size_t n_requests_ = 0;
  uint64_t host_bytes_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace triptych
