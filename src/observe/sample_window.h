#pragma once

#include <array>
#include <cstddef>

namespace triptych {

/// What a window holds, at a glance.
struct SampleSummary {
  size_t n_seen = 0;  ///< since the start; the window holds the latest of these
  double p50 = 0;
  double p99 = 0;

  double jitter() const { return p99 - p50; }
};

/// The latest values of a gauge. One thread.
class SampleWindow {
 public:
  static constexpr size_t kSize = 1024;

  void add(double value) { values_[n_seen_++ % kSize] = value; }
  size_t n_seen() const { return n_seen_; }
  SampleSummary summary() const;

 private:
  std::array<double, kSize> values_{};
  size_t n_seen_ = 0;
};

}  // namespace triptych
