#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/status.h"

namespace triptych {

/// Process-wide settings as strings, one field a line of settings.def. Read once at start and then
/// passed down; nothing else reads the environment.
struct Settings {
#define TRIPTYCH_SETTING(field, env, fallback, help) std::string field = fallback;
#include "base/settings.def"
#undef TRIPTYCH_SETTING

  /// Defaults overridden by the environment.
  static Settings from_environment();
  /// The same with the variables given by `lookup` (null: not set); for tests.
  static Settings from_lookup(const std::function<const char*(const char*)>& lookup);

  /// `threads` as a number: at least 1, at most 1024. 0 is resolved to the cores of this process.
  Result<int> thread_count() const;
};

struct SettingInfo {
  const char* field;
  const char* env;
  const char* fallback;
  const char* help;
};

/// The table behind Settings, for help texts and docs.
std::span<const SettingInfo> setting_table();

/// Cores that this process may use: its affinity mask, and no more than its container's CPU quota
/// (cgroup v2, rounded up). At least 1.
int available_cores();

/// The text of a cpu.max file ("200000 100000": quota and period in microseconds, or "max 100000")
/// as whole cores, rounded up; 0 when it sets no limit or is not understood.
int cores_of_quota(std::string_view cpu_max);

}  // namespace triptych
