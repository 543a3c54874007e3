#include "base/thread_pool.h"

#include <algorithm>

namespace triptych {
namespace {

// About 20 to 50 microseconds of spinning: longer than the gap between two operators of a decode
// step, shorter than anyone notices on an idle machine.
constexpr int kSpins = 2000;

inline void pause_cpu() { __builtin_ia32_pause(); }

}  // namespace

ThreadPool::ThreadPool(int n_threads)
    : n_threads_(std::max(1, n_threads)), shares_(static_cast<size_t>(n_threads_)) {
  threads_.reserve(static_cast<size_t>(n_threads_ - 1));
  for (int worker = 1; worker < n_threads_; ++worker) {
    threads_.emplace_back([this, worker] { work(worker); });
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& t : threads_) t.join();
}

bool ThreadPool::take_share(int worker, uint32_t epoch) {
  uint32_t before = epoch - 1;
  return shares_[static_cast<size_t>(worker)].taken.compare_exchange_strong(
      before, epoch, std::memory_order_relaxed);
}

void ThreadPool::run_raw(Job job, void* context) {
  if (n_threads_ == 1) {
    job(context, 0);
    return;
  }
  job_ = job;
  context_ = context;
  pending_.store(n_threads_ - 1, std::memory_order_relaxed);
  // seq_cst pairs with the worker's increment of sleeping_ before its last look at epoch_: either
  // it sees the new epoch, or we see it asleep and wake it.
  const uint32_t epoch = epoch_.fetch_add(1, std::memory_order_seq_cst) + 1;
  if (sleeping_.load(std::memory_order_seq_cst) > 0) epoch_.notify_all();
  job(context, 0);
  // A worker that has not begun by now waits for a core that others hold: its share is done here.
  for (int w = 1; w < n_threads_ && pending_.load(std::memory_order_acquire) != 0; ++w) {
    if (!take_share(w, epoch)) continue;
    job(context, w);
    pending_.fetch_sub(1, std::memory_order_relaxed);
  }
  for (int spins = 0; pending_.load(std::memory_order_acquire) != 0; ++spins) {
    if (spins < kSpins) {
      pause_cpu();
    } else {
      std::this_thread::yield();  // more threads than free cores: let the workers finish
    }
  }
}

void ThreadPool::work(int worker) {
  uint32_t seen = 0;
  for (;;) {
    uint32_t now = epoch_.load(std::memory_order_acquire);
    for (int spins = 0; now == seen && spins < kSpins; ++spins) {
      pause_cpu();
      now = epoch_.load(std::memory_order_acquire);
    }
    while (now == seen) {
      sleeping_.fetch_add(1, std::memory_order_seq_cst);
      if (epoch_.load(std::memory_order_seq_cst) == seen) epoch_.wait(seen);
      sleeping_.fetch_sub(1, std::memory_order_relaxed);
      now = epoch_.load(std::memory_order_acquire);
    }
    seen = now;
    if (stop_.load(std::memory_order_relaxed)) return;
    if (!take_share(worker, now)) continue;
    job_(context_, worker);
    pending_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace triptych
