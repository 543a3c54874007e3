#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace triptych {

/// The numbers behind metrics. Each has a copy in every shard, and a thread keeps to one shard, so
/// that threads that count the same thing seldom write the same cache line.
class MetricCells {
 public:
  using Cell = std::atomic<uint64_t>;
  static constexpr size_t kShards = 4;
  static constexpr size_t kStride = 1024;  ///< from a cell to its copy in the next shard

  /// `n` cells in a row, at most kStride, in the first shard; all copies are zero. They stay where
  /// they are as long as this object.
  Cell* take(size_t n);

  /// From a cell of the first shard to the copy that this thread changes.
  static size_t shard_offset() {
    thread_local uint32_t number = 0;  // 0: not numbered yet, so that no guard is needed to read it
    if (number == 0) number = number_thread();
    return number % kShards * kStride;
  }
  /// What the copies of a count add up to.
  static uint64_t total(const Cell* first) {
    uint64_t out = 0;
    for (size_t shard = 0; shard < kShards; ++shard) {
      out += first[shard * kStride].load(std::memory_order_relaxed);
    }
    return out;
  }

 private:
  struct alignas(64) Chunk {
    std::array<Cell, kShards * kStride> cells{};
  };
  static uint32_t number_thread();

  std::vector<std::unique_ptr<Chunk>> chunks_;
  size_t n_taken_ = kStride;  ///< of the last chunk
};

}  // namespace triptych
