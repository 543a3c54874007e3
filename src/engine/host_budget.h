#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "base/status.h"

namespace triptych {

/// Host memory that requests in work take (media, pixels, ids), bounded. Thread-safe; outlives its
/// shares.
class HostBudget {
 public:
  /// Bytes that are counted until it goes. Written by one thread at a time.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept { *this = std::move(other); }
    Share& operator=(Share&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(n_bytes_, other.n_bytes_);
      return *this;
    }
    ~Share() { shrink(0); }

    uint64_t n_bytes() const { return n_bytes_; }
    /// Gives back what is above `n_bytes`.
    void shrink(uint64_t n_bytes);

   private:
    friend class HostBudget;
    Share(HostBudget* budget, uint64_t n_bytes) : budget_(budget), n_bytes_(n_bytes) {}
    HostBudget* budget_ = nullptr;
    uint64_t n_bytes_ = 0;
  };

  explicit HostBudget(uint64_t cap_bytes) : cap_(cap_bytes) {}

  /// kResourceExhausted with the figures when they do not fit beside the others.
  Result<Share> take(uint64_t n_bytes);
  uint64_t in_use() const;
  /// How often there was no room beside the others.
  int64_t n_refused() const;

 private:
  const uint64_t cap_;
  mutable std::mutex mutex_;
  uint64_t in_use_ = 0;
  int64_t n_refused_ = 0;
};

}  // namespace triptych
