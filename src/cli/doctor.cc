#include "cli/doctor.h"

#include <fmt/format.h>

#include "backends/backend_list.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/settings.h"
#include "cli/terminal.h"

namespace triptych::cli {
namespace {

/// What is slower than it could be, each with its remedy.
std::vector<std::string> advice_for(const Settings& settings, const Backend& backend,
                                    int n_threads) {
  std::vector<std::string> out = backend.advice;
  const std::string pages = transparent_huge_page_mode();
  if (pages == "never" || pages == "unavailable") {
    out.push_back(
        "transparent huge pages are off: as root, `echo madvise > "
        "/sys/kernel/mm/transparent_hugepage/enabled` speeds up decoding");
  } else if (settings.huge_pages == "off") {
    out.push_back("TRIPTYCH_HUGE_PAGES=off: decoding reads weights through small pages");
  }
  if (n_threads < available_cores()) {
    out.push_back(fmt::format("TRIPTYCH_THREADS={} leaves {} cores unused", n_threads,
                              available_cores() - n_threads));
  } else if (n_threads > available_cores()) {
    out.push_back(
        fmt::format("TRIPTYCH_THREADS={} is more than the {} cores: threads will wait "
                    "for each other",
                    n_threads, available_cores()));
  }
  if (settings.matmul == "f32" && backend.native_bf16_matmul) {
    out.push_back(
        "TRIPTYCH_MATMUL=f32 leaves the CPU's bf16 products unused: prefill and vision "
        "towers are slower");
  }
  return out;
}

Json list_json(const std::vector<std::string>& lines) {
  Json out = Json::array();
  for (const std::string& line : lines) out.append(Json::string(line));
  return out;
}

}  // namespace

Status run_doctor(bool measure, bool json) {
  const Settings settings = Settings::from_environment();
  TRIPTYCH_ASSIGN_OR_RETURN(const int n_threads, settings.thread_count());
  TRIPTYCH_ASSIGN_OR_RETURN(const Backend backend, backends().front().make(settings));
  std::vector<std::string> built;
  for (const BackendEntry& entry : backends()) built.emplace_back(entry.name);
  const std::vector<std::string> advice = advice_for(settings, backend, n_threads);
  Ceilings ceilings;
  if (measure) {
    ThreadPool pool(n_threads);
    ceilings = backend.measure_ceilings(pool);
  }
  if (json) {
    Json out = Json::object();
    out.set("backend", Json::string(backend.description));
    out.set("backends_built", list_json(built));
    out.set("facts", list_json(backend.facts));
    out.set("threads", Json::integer(n_threads));
    out.set("cores", Json::integer(available_cores()));
    out.set("huge_pages", Json::string(transparent_huge_page_mode()));
    out.set("memory_bytes", Json::integer(static_cast<int64_t>(total_memory_bytes())));
    out.set("available_bytes", Json::integer(static_cast<int64_t>(available_memory_bytes())));
    if (measure) {
      out.set("f32_peak_gflops", Json::number(ceilings.f32_flops / 1e9));
      out.set("bf16_peak_gflops",
              ceilings.bf16_flops > 0 ? Json::number(ceilings.bf16_flops / 1e9) : Json());
      out.set("read_gb_per_s", Json::number(ceilings.read_bytes_per_s / 1e9));
    }
    out.set("advice", list_json(advice));
    fmt::print("{}\n", out.dump(1));
    return Status::ok();
  }
  const auto row = [](std::string_view name, const std::string& value) {
    fmt::print("{:<16} {}\n", name, value);
  };
  row("backend", backend.description);
  row("built in", fmt::format("{}", fmt::join(built, ", ")));
  for (const std::string& fact : backend.facts) row("", fact);
  row("threads", fmt::format("{} of {} cores", n_threads, available_cores()));
  row("huge pages", transparent_huge_page_mode());
  row("memory",
      fmt::format("{} free of {}", human_bytes(static_cast<double>(available_memory_bytes())),
                  human_bytes(static_cast<double>(total_memory_bytes()))));
  if (measure) {
    row("f32 products", fmt::format("{:.0f} GFLOP/s", ceilings.f32_flops / 1e9));
    row("bf16 products", ceilings.bf16_flops > 0
                             ? fmt::format("{:.0f} GFLOP/s", ceilings.bf16_flops / 1e9)
                             : "none native");
    row("memory reads", fmt::format("{:.1f} GB/s", ceilings.read_bytes_per_s / 1e9));
  }
  fmt::print("\n");
  if (advice.empty()) fmt::print("Nothing stands in the way of full speed.\n");
  for (const std::string& line : advice) fmt::print("- {}\n", line);
  fmt::print("\nsettings (environment variables)\n");
  for (const SettingInfo& s : setting_table()) {
    fmt::print("  {:<20} {} (default {})\n", s.env, s.help, s.fallback);
  }
  return Status::ok();
}

}  // namespace triptych::cli
