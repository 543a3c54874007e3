#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace triptych {

/// A fixed set of threads that run one job at a time together with the caller. Made for many small
/// jobs in a row (a decode step has hundreds): workers spin briefly before they sleep, and
/// starting a job neither allocates nor locks. One thread at a time may call run(); jobs must not
/// call run() on the same pool and must not throw.
class ThreadPool {
 public:
  /// `n_threads` in all, the caller among them; at least 1.
  explicit ThreadPool(int n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return n_threads_; }

  /// Calls f(worker) once for each worker in [0, size()) and waits for all: at the same time where
  /// there are cores for it. The share of a worker that has not begun when the caller is done with
  /// its own is done by the caller; so no share may wait for another.
  template <typename F>
  void run(F&& f) {
    using Fn = std::remove_reference_t<F>;
    run_raw([](void* context, int worker) { (*static_cast<Fn*>(context))(worker); },
            const_cast<void*>(static_cast<const void*>(&f)));
  }

  /// Splits [0, n) into blocks of at least `grain` and calls f(begin, end) on them, at most one
  /// block a worker. The split depends on n, grain and size() only.
  template <typename F>
  void parallel_for(int64_t n, int64_t grain, F&& f) {
    if (n <= 0) return;
    const int64_t most = (n + grain - 1) / grain;
    const int64_t parts = most < n_threads_ ? most : n_threads_;
    if (parts <= 1) {
      f(int64_t{0}, n);
      return;
    }
    run([&](int worker) {
      if (worker >= parts) return;
      f(n * worker / parts, n * (worker + 1) / parts);
    });
  }

  /// Hands out indices [0, n) one block of `grain` at a time to whichever worker is free: for work
  /// whose pieces differ in cost.
  template <typename F>
  void parallel_dynamic(int64_t n, int64_t grain, F&& f) {
    if (n <= 0) return;
    if (n_threads_ == 1 || n <= grain) {
      f(int64_t{0}, n);
      return;
    }
    std::atomic<int64_t> next{0};
    run([&](int) {
      for (;;) {
        const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
        if (begin >= n) return;
        f(begin, begin + grain < n ? begin + grain : n);
      }
    });
  }

 private:
  using Job = void (*)(void* context, int worker);
  struct alignas(64) Share {
    std::atomic<uint32_t> taken{0};  // the last job of which somebody took this share
  };

  void run_raw(Job job, void* context);
  void work(int worker);
  /// Whether this share of this job is the caller's to do: true for the first who asks.
  bool take_share(int worker, uint32_t epoch);

  int n_threads_;
  Job job_ = nullptr;
  void* context_ = nullptr;
  // Counts jobs; a worker that sees it change runs the job (or leaves, when stop_ is set).
  alignas(64) std::atomic<uint32_t> epoch_{0};
  alignas(64) std::atomic<int> pending_{0};
  alignas(64) std::atomic<int> sleeping_{0};
  std::atomic<bool> stop_{false};
  std::vector<Share> shares_;
  std::vector<std::thread> threads_;
};

}  // namespace triptych
