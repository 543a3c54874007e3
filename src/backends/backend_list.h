#pragma once

#include <span>

#include "backends/backend.h"
#include "base/settings.h"
#include "base/status.h"

namespace triptych {

struct BackendEntry {
  const char* name;
  Result<Backend> (*make)(const Settings& settings);
};

/// The backends built into this program, the preferred one first. CMake writes the list from the
/// folders that were built (backend_list.cc.in).
std::span<const BackendEntry> backends();

}  // namespace triptych
