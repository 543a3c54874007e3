#include "observe/sample_window.h"

#include <algorithm>
#include <cmath>

namespace triptych {

SampleSummary SampleWindow::summary() const {
  SampleSummary out{.n_seen = n_seen_};
  const size_t n = std::min(n_seen_, kSize);
  if (n == 0) return out;
  std::array<double, kSize> sorted = values_;
  // Nearest rank: the smallest value that the share of the samples does not exceed.
  const auto quantile = [&](double q) {
    const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(n))) - 1;
    std::nth_element(sorted.begin(), sorted.begin() + rank, sorted.begin() + n);
    return sorted[rank];
  };
  out.p50 = quantile(0.5);
  out.p99 = quantile(0.99);
  return out;
}

}  // namespace triptych
