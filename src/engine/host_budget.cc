#include "engine/host_budget.h"

#include <fmt/format.h>

namespace triptych {

void HostBudget::Share::shrink(uint64_t n_bytes) {
  if (n_bytes >= n_bytes_) return;
  const std::lock_guard lock(budget_->mutex_);
  budget_->in_use_ -= n_bytes_ - n_bytes;
  n_bytes_ = n_bytes;
}

Result<HostBudget::Share> HostBudget::take(uint64_t n_bytes) {
  if (n_bytes > cap_) {
    return out_of_range(
        fmt::format("the request's media and text take {} MiB of host memory, {} MiB are all there "
                    "is; send less in one request",
                    n_bytes >> 20, cap_ >> 20));
  }
  const std::lock_guard lock(mutex_);
  if (n_bytes > cap_ - in_use_) {
    ++n_refused_;
    return resource_exhausted(
        fmt::format("the request's media and text take {} MiB of host memory, {} of {} MiB are in "
                    "use; try again later",
                    n_bytes >> 20, in_use_ >> 20, cap_ >> 20));
  }
  in_use_ += n_bytes;
  return Share(this, n_bytes);
}

uint64_t HostBudget::in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

int64_t HostBudget::n_refused() const {
  const std::lock_guard lock(mutex_);
  return n_refused_;
}

}  // namespace triptych
