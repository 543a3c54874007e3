#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <vector>

namespace triptych {
namespace {

TEST(ThreadPool, RunCallsEveryWorkerOnce) {
  for (int n_threads : {1, 2, 3, 8}) {
    ThreadPool pool(n_threads);
    ASSERT_EQ(pool.size(), n_threads);
    std::vector<std::atomic<int>> calls(static_cast<size_t>(n_threads));
    for (int round = 0; round < 50; ++round) {
      pool.run([&](int worker) { calls[static_cast<size_t>(worker)].fetch_add(1); });
    }
    for (const auto& c : calls) EXPECT_EQ(c.load(), 50);
  }
}

TEST(ThreadPool, AtLeastOneThread) {
  ThreadPool pool(0);
  EXPECT_EQ(pool.size(), 1);
  int calls = 0;
  pool.run([&](int worker) { calls += 1 + worker; });
  EXPECT_EQ(calls, 1);
}

TEST(ThreadPool, ParallelForCoversTheRangeOnce) {
  ThreadPool pool(3);
  for (int64_t n : {0, 1, 2, 3, 7, 100, 1001}) {
    for (int64_t grain : {1, 4, 64, 5000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
      std::atomic<int> blocks{0};
      pool.parallel_for(n, grain, [&](int64_t begin, int64_t end) {
        EXPECT_LT(begin, end);
        blocks.fetch_add(1);
        for (int64_t i = begin; i < end; ++i) seen[static_cast<size_t>(i)].fetch_add(1);
      });
      for (const auto& s : seen) EXPECT_EQ(s.load(), 1);
      EXPECT_LE(blocks.load(), 3);
    }
  }
}

TEST(ThreadPool, ParallelDynamicCoversTheRangeOnce) {
  ThreadPool pool(4);
  for (int64_t n : {0, 1, 5, 64, 1003}) {
    for (int64_t grain : {1, 3, 64}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
      pool.parallel_dynamic(n, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) seen[static_cast<size_t>(i)].fetch_add(1);
      });
      for (const auto& s : seen) EXPECT_EQ(s.load(), 1);
    }
  }
}

// Writes of one job must be visible to the next, whichever worker made them.
TEST(ThreadPool, ManySmallJobsSeeEachOthersWrites) {
  ThreadPool pool(4);
  constexpr int64_t kN = 256;
  constexpr int kRounds = 3000;
  std::vector<int> a(kN, 0);
  std::vector<int> b(kN, 0);
  for (int round = 0; round < kRounds; ++round) {
    pool.parallel_for(kN, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        b[static_cast<size_t>(i)] = a[static_cast<size_t>(kN - 1 - i)] + 1;
      }
    });
    std::swap(a, b);
  }
  for (int v : a) EXPECT_EQ(v, kRounds);
}

// Pauses longer than the spin phase: workers are asleep when the next job comes.
TEST(ThreadPool, WakesSleepingWorkers) {
  ThreadPool pool(3);
  std::atomic<int> calls{0};
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    pool.run([&](int) { calls.fetch_add(1); });
  }
  EXPECT_EQ(calls.load(), 60);
}

// More threads than cores, as beside other programs: nobody waits for a worker that gets no core,
// and every share is still done once.
TEST(ThreadPool, SharesOfLateWorkersAreDoneByTheCaller) {
  constexpr int kThreads = 64;
  ThreadPool pool(kThreads);
  std::vector<int> calls(kThreads, 0);
  for (int round = 0; round < 200; ++round) {
    pool.run([&](int worker) { calls[static_cast<size_t>(worker)] += 1; });
  }
  for (int c : calls) EXPECT_EQ(c, 200);
}

TEST(ThreadPool, StartsAndStopsRepeatedly) {
  for (int round = 0; round < 50; ++round) {
    ThreadPool pool(1 + round % 5);
    if (round % 2 == 0) continue;  // also destroyed without a single job
    std::atomic<int> calls{0};
    pool.run([&](int) { calls.fetch_add(1); });
    EXPECT_EQ(calls.load(), pool.size());
  }
}

// Several pools at once, as tests and a server's side pool have them.
TEST(ThreadPool, PoolsAreIndependent) {
  ThreadPool outer(2);
  std::vector<int64_t> sums(2, 0);
  outer.run([&](int worker) {
    ThreadPool inner(2);
    std::vector<int64_t> parts(2, 0);
    for (int round = 0; round < 100; ++round) {
      inner.run([&](int w) { parts[static_cast<size_t>(w)] += w + 1; });
    }
    sums[static_cast<size_t>(worker)] = std::accumulate(parts.begin(), parts.end(), int64_t{0});
  });
  EXPECT_EQ(sums[0], 300);
  EXPECT_EQ(sums[1], 300);
}

}  // namespace
}  // namespace triptych
