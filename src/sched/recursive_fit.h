#pragma once

#include <array>
#include <cstddef>

namespace triptych {

/// Fits factors so that sum(factor[i] * part[i]) follows a measured total, one observation at a
/// time: recursive least squares of the relative error, with forgetting. Parts are what a prior
/// model expects, so every factor starts at 1 and stays in [kLeast, kMost]. Observations far
/// outside the usual error count little (Huber weights); a lasting change still gets through,
/// because the usual error then grows.
class RecursiveFit {
 public:
  static constexpr size_t kParts = 8;
  static constexpr double kLeast = 0.05;
  static constexpr double kMost = 20;
  using Parts = std::array<double, kParts>;

  RecursiveFit();

  double predict(const Parts& parts) const;
  /// `measured` in the unit of the parts; values that are not above 0 are ignored.
  void observe(const Parts& parts, double measured);
  const Parts& factors() const { return factors_; }

 private:
  void forget();
  void keep_in_bounds();
  void limit_uncertainty();

  Parts factors_;
  std::array<Parts, kParts> covariance_;
  double usual_error_ = 1;  ///< running size of the relative error
  int n_far_ = 0;           ///< far observations in a row; negative: measured below predicted
};

}  // namespace triptych
