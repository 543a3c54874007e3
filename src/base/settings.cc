#include "base/settings.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <thread>

namespace triptych {

Settings Settings::from_environment() {
  return from_lookup([](const char* name) { return std::getenv(name); });
}

Settings Settings::from_lookup(const std::function<const char*(const char*)>& lookup) {
  Settings out;
#define TRIPTYCH_SETTING(field, env, fallback, help) \
  if (const char* v = lookup(env); v != nullptr && *v != '\0') out.field = v;
#include "base/settings.def"
#undef TRIPTYCH_SETTING
  return out;
}

Result<int> Settings::thread_count() const {
  int n = 0;
  const auto [end, error] = std::from_chars(threads.data(), threads.data() + threads.size(), n);
  if (error != std::errc() || end != threads.data() + threads.size() || n < 0 || n > 1024) {
    return invalid_argument(fmt::format(
        "TRIPTYCH_THREADS=\"{}\" is not a number of threads between 0 and 1024", threads));
  }
  return n == 0 ? available_cores() : n;
}

std::span<const SettingInfo> setting_table() {
  static constexpr SettingInfo kTable[] = {
#define TRIPTYCH_SETTING(field, env, fallback, help) {#field, env, fallback, help},
#include "base/settings.def"
#undef TRIPTYCH_SETTING
  };
  return kTable;
}

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) {
    // More processors than a cpu_set_t has bits for.
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace triptych
