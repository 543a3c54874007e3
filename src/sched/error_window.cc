#include "sched/error_window.h"

#include <algorithm>
#include <cmath>

namespace triptych {

void ErrorWindow::add(double predicted, double measured) {
  if (!(measured > 0)) return;
  errors_[n_seen_ % kSize] = static_cast<float>(std::fabs(predicted - measured) / measured);
  ++n_seen_;
}

double ErrorWindow::quantile(double q) const {
  const size_t n = std::min(n_seen_, kSize);
  if (n == 0) return 0;
  std::array<float, kSize> sorted = errors_;
  const auto rank = std::min(n - 1, static_cast<size_t>(q * static_cast<double>(n)));
  std::nth_element(sorted.begin(), sorted.begin() + rank, sorted.begin() + n);
  return sorted[rank];
}

}  // namespace triptych
