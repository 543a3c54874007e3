#include "sched/recursive_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace triptych {
namespace {

constexpr double kForgetting = 0.995;
constexpr double kNoise = 0.01;       // variance of a usual relative error
constexpr double kPriorVariance = 1;  // of a factor that was never observed
constexpr double kOutlier = 3;        // usual errors beyond which an observation counts less
constexpr int kChanged = 12;          // far observations in a row that are no outliers
constexpr double kErrorMemory = 0.95;
constexpr double kLeastUsualError = 0.01;

}  // namespace

RecursiveFit::RecursiveFit() {
  factors_.fill(1);
  forget();
}

void RecursiveFit::forget() {
  covariance_ = {};
  for (size_t i = 0; i < kParts; ++i) covariance_[i][i] = kPriorVariance;
  usual_error_ = 1;
  n_far_ = 0;
}

double RecursiveFit::predict(const Parts& parts) const {
  double sum = 0;
  for (size_t i = 0; i < kParts; ++i) sum += factors_[i] * parts[i];
  return sum;
}

void RecursiveFit::observe(const Parts& parts, double measured) {
  if (!(measured > 0) || !std::isfinite(measured)) return;
  Parts x;
  for (size_t i = 0; i < kParts; ++i) x[i] = parts[i] / measured;
  const double error = 1 - predict(x);
  const double size = std::fabs(error);
  // One far observation is an outlier; many in a row on one side are another machine.
  n_far_ = size <= kOutlier * usual_error_
               ? 0
               : (error > 0 ? std::max(n_far_, 0) + 1 : std::min(n_far_, 0) - 1);
  if (std::abs(n_far_) >= kChanged) forget();
  const double weight = std::min(1.0, kOutlier * usual_error_ / std::max(size, 1e-12));
  usual_error_ =
      std::max(kLeastUsualError,
               kErrorMemory * usual_error_ + (1 - kErrorMemory) * std::min(size, 4 * usual_error_));

  Parts gain{};
  for (size_t i = 0; i < kParts; ++i) {
    for (size_t j = 0; j < kParts; ++j) gain[i] += covariance_[i][j] * x[j];
  }
  double spread = kForgetting * kNoise / weight;
  for (size_t i = 0; i < kParts; ++i) spread += x[i] * gain[i];
  for (size_t i = 0; i < kParts; ++i) {
    factors_[i] += gain[i] / spread * error;
    for (size_t j = 0; j < kParts; ++j) {
      covariance_[i][j] = (covariance_[i][j] - gain[i] * gain[j] / spread) / kForgetting;
    }
  }
  keep_in_bounds();
  limit_uncertainty();
}

// A factor beyond its bounds goes back to them, and the others follow as they would had it been
// measured there: cut off alone it would leave the sum of the parts wrong.
void RecursiveFit::keep_in_bounds() {
  for (size_t i = 0; i < kParts; ++i) {
    const double back = std::clamp(factors_[i], kLeast, kMost) - factors_[i];
    if (back == 0 || !(covariance_[i][i] > 0)) continue;
    for (size_t j = 0; j < kParts; ++j) {
      factors_[j] += covariance_[j][i] / covariance_[i][i] * back;
    }
  }
  for (double& factor : factors_) factor = std::clamp(factor, kLeast, kMost);
}

// Forgetting lets the variance of a part that is not seen grow without end; back to the prior's.
void RecursiveFit::limit_uncertainty() {
  for (size_t i = 0; i < kParts; ++i) {
    if (covariance_[i][i] <= kPriorVariance) continue;
    const double scale = std::sqrt(kPriorVariance / covariance_[i][i]);
    for (size_t j = 0; j < kParts; ++j) {
      covariance_[i][j] *= scale;
      covariance_[j][i] *= scale;
    }
  }
}

}  // namespace triptych
