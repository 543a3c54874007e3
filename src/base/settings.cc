#include "base/settings.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
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

int cores_of_quota(std::string_view cpu_max) {
  int64_t quota = 0;
  int64_t period = 0;
  const char* end = cpu_max.data() + cpu_max.size();
  const auto [rest, error] = std::from_chars(cpu_max.data(), end, quota);
  if (error != std::errc() || rest == end || *rest != ' ') return 0;
  const auto [last, period_error] = std::from_chars(rest + 1, end, period);
  if (period_error != std::errc() || quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::min<int64_t>((quota - 1) / period + 1, 1 << 20));
}

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = 0;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    cores = CPU_COUNT(&set);
  } else {  // more processors than a cpu_set_t has bits for
    cores = static_cast<int>(std::thread::hardware_concurrency());
  }
  // Threads beyond the quota only use it up earlier in each period, and then all of them stand
  // still.
  std::string quota;
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::getline(file, quota);
  const int allowed = cores_of_quota(quota);
  if (allowed > 0) cores = std::min(cores, allowed);
  return std::max(1, cores);
}

}  // namespace triptych
