#include "server/server_metrics.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>

#include "base/memory.h"
#include "observe/metric_table.h"

namespace triptych {
namespace {

constexpr std::string_view kOther = "other";

/// Seconds since 1970 when the process started; now, where the system does not tell.
double process_start_seconds() {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  timespec since_boot{};
  std::ifstream file("/proc/self/stat");
  std::string stat;
  std::getline(file, stat);
  if (clock_gettime(CLOCK_BOOTTIME, &since_boot) != 0) return now.count();
  // proc(5): the 22nd field, in ticks since boot; the second one, in brackets, may hold blanks.
  constexpr int kFieldsBetween = 20;
  size_t at = stat.rfind(')');
  for (int i = 0; i < kFieldsBetween && at != std::string::npos; ++i) at = stat.find(' ', at + 1);
  if (at == std::string::npos) return now.count();
  const double started =
      std::strtod(stat.c_str() + at, nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
  const double uptime =
      static_cast<double>(since_boot.tv_sec) + 1e-9 * static_cast<double>(since_boot.tv_nsec);
  return now.count() - (uptime - started);
}

}  // namespace

ServerMetrics::ServerMetrics(MetricsRegistry& registry, const std::vector<Model>& models,
                             const Routes& routes)
    : registry_(registry), refusals_(registry) {
  std::vector<std::string_view> paths = routes.all;
  paths.push_back(kOther);
  for (const std::string_view path : paths) {
    for (size_t i = 0; i < kStatusClasses.size(); ++i) {
      answered_[path][i] =
          registry.counter(family_of(Metric::kHttpRequests), {path, kStatusClasses[i]});
    }
  }
  body_bytes_ = registry.counter(family_of(Metric::kHttpBodyBytes));
  connections_ = registry.gauge(family_of(Metric::kHttpConnections));
  for (const Model& model : models) {
    for (const std::string_view path : routes.answered) {
      answers_.try_emplace({model.name, path}, registry, model.name, path);
    }
    engines_.push_back({model.engine, EngineMetrics(registry, model.name)});
  }
  registry.gauge(family_of(Metric::kProcessStart))->set(process_start_seconds());
  resident_ = registry.gauge(family_of(Metric::kResidentBytes));
}

void ServerMetrics::answered(std::string_view path, int http_status) {
  auto found = answered_.find(path);
  if (found == answered_.end()) found = answered_.find(kOther);
  const std::string_view wanted = status_class(http_status);
  for (size_t i = 0; i < kStatusClasses.size(); ++i) {
    if (kStatusClasses[i] == wanted) found->second[i]->add();
  }
}

void ServerMetrics::refused(int http_status) {
  answered(kOther, http_status);
  if (http_status == 401) refusals_.unauthorised->add();
  if (http_status == 413 || http_status == 431) refusals_.limits->add();
  if (http_status == 503) ++n_bodies_refused_;
}

openai::AnswerObserver& ServerMetrics::answers(const std::string& model, std::string_view path) {
  return answers_.at({model, path});
}

std::string ServerMetrics::page(MetricsFormat format) {
  const std::lock_guard lock(mutex_);
  int64_t n_queue_full = 0;
  int64_t n_memory = n_bodies_refused_;
  for (Watched& watched : engines_) {
    const EngineStatus status = watched.engine->snapshot();
    watched.metrics.update(status);
    n_queue_full += status.refused.queue;
    n_memory += status.refused.memory;
  }
  refusals_.queue_full->raise_to(static_cast<uint64_t>(n_queue_full));
  refusals_.memory->raise_to(static_cast<uint64_t>(n_memory));
  connections_->set(static_cast<double>(n_connections_));
  resident_->set(static_cast<double>(resident_bytes()));
  return registry_.render(format);
}

}  // namespace triptych
