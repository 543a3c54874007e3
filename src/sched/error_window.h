#pragma once

#include <array>
#include <cstddef>

namespace triptych {

/// Relative errors of the latest predictions.
class ErrorWindow {
 public:
  static constexpr size_t kSize = 512;

  void add(double predicted, double measured);
  size_t n_seen() const { return n_seen_; }
  /// The error that a share `q` of the window does not exceed, e.g. 0.95; 0 when it is empty.
  double quantile(double q) const;

 private:
  std::array<float, kSize> errors_{};
  size_t n_seen_ = 0;
};

}  // namespace triptych
