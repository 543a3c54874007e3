#pragma once

#include <atomic>
#include <cstdint>

namespace triptych::http {

/// Bytes of bodies that are being received, by all connections.
class BodyBudget {
 public:
  explicit BodyBudget(uint64_t most) : most_(most) {}
  bool take(uint64_t n) {
    uint64_t used = used_.load();
    do {
      if (n > most_ || used > most_ - n) return false;
    } while (!used_.compare_exchange_weak(used, used + n));
    return true;
  }
  void give_back(uint64_t n) { used_ -= n; }

 private:
  const uint64_t most_;
  std::atomic<uint64_t> used_ = 0;
};

/// What one of them takes; given back with this object.
class BodyShare {
 public:
  explicit BodyShare(BodyBudget& budget) : budget_(budget) {}
  ~BodyShare() { budget_.give_back(bytes_); }
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;
  /// Grows to `bytes`; false: there is no room.
  bool hold(uint64_t bytes) {
    if (bytes <= bytes_) return true;
    if (!budget_.take(bytes - bytes_)) return false;
    bytes_ = bytes;
    return true;
  }

 private:
  BodyBudget& budget_;
  uint64_t bytes_ = 0;
};

}  // namespace triptych::http
