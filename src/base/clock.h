#pragma once

#include <chrono>

namespace triptych {

/// Milliseconds on a clock that never goes back; only differences mean anything.
inline double steady_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace triptych
