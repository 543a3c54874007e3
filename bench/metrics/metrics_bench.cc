// What counting costs: nanoseconds an observation, by one thread and by two on the same series, and
// milliseconds a page of 2,000 series.
//
//   metrics_bench
//
// Each figure is the median of repeated runs; what the loop itself takes is part of it.

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "observe/metric_table.h"

namespace triptych {
namespace {

constexpr int kRuns = 21;
constexpr int kEach = 1'000'000;
constexpr int kEachWithId = 100'000;
constexpr int kSeries = 2000;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + kRuns / 2, values.end());
  return values[kRuns / 2];
}

/// Nanoseconds that a thread takes for one of `n` calls while `n_threads` do the same.
template <typename F>
double nanoseconds(int n_threads, int n, F&& call) {
  std::vector<double> runs;
  for (int run = 0; run < kRuns; ++run) {
    std::atomic<int> n_ready = 0;
    std::vector<double> took(static_cast<size_t>(n_threads));
    std::vector<std::thread> threads;
    for (int t = 0; t < n_threads; ++t) {
      threads.emplace_back([&, t] {
        ++n_ready;
        while (n_ready < n_threads) {
        }
        const double start = seconds_now();
        for (int i = 0; i < n; ++i) call(i);
        took[static_cast<size_t>(t)] = seconds_now() - start;
      });
    }
    for (std::thread& thread : threads) thread.join();
    runs.push_back(*std::max_element(took.begin(), took.end()) * 1e9 / n);
  }
  return median(std::move(runs));
}

double page_ms(const MetricsRegistry& registry, MetricsFormat format) {
  std::vector<double> runs;
  for (int run = 0; run < kRuns; ++run) {
    const double start = seconds_now();
    const std::string page = registry.render(format);
    runs.push_back((seconds_now() - start) * 1e3);
  }
  return median(std::move(runs));
}

void run() {
  MetricsRegistry registry;
  const MetricFamily& times = family_of(Metric::kTimeToFirstToken);
  Counter* counter = registry.counter(family_of(Metric::kPromptTokens), {"bench"});
  Gauge* gauge = registry.gauge(family_of(Metric::kRunning), {"bench"});
  Histogram* histogram = registry.histogram(times, {"bench"});
  const auto value = [](int i) { return 0.001 * (i % 5000); };
  const std::string id = "chatcmpl-0123456789abcdef00000001";
  std::string result;
  const auto tell = [&](const char* what, const std::string& key, auto&& call, int n) {
    const double one = nanoseconds(1, n, call);
    const double two = nanoseconds(2, n, call);
    fmt::print("  {:<26} {:>8.1f} ns {:>8.1f} ns\n", what, one, two);
    result += fmt::format("\"{}_ns\": {:.1f}, \"{}_two_threads_ns\": {:.1f}, ", key, one, key, two);
  };
  fmt::print("  {:<26} {:>11} {:>11}\n", "an observation", "one thread", "two");
  tell(
      "counter", "counter", [&](int) { counter->add(); }, kEach);
  tell(
      "gauge", "gauge", [&](int i) { gauge->set(i); }, kEach);
  tell(
      "histogram", "histogram", [&](int i) { histogram->observe(value(i)); }, kEach);
  tell(
      "histogram, with an id", "exemplar", [&](int i) { histogram->observe(value(i), id); },
      kEachWithId);

  // Series as a server with some models has them: more than half are lines of histograms.
  MetricsRegistry large;
  for (int model = 0; large.n_lines() < kSeries; ++model) {
    const std::string name = fmt::format("models/model-{}", model);
    for (const MetricFamily& family : metric_table()) {
      const bool fits = family.labels == "model_name" && large.n_lines() < kSeries;
      if (fits && family.kind == MetricKind::kCounter) large.counter(family, {name})->add(12345);
      if (fits && family.kind == MetricKind::kGauge) large.gauge(family, {name})->set(0.12345);
      if (!fits || family.kind != MetricKind::kHistogram) continue;
      for (int i = 0; i < 100; ++i) large.histogram(family, {name})->observe(value(50 * i), id);
    }
  }
  const double plain = page_ms(large, MetricsFormat::kPrometheus);
  const double open = page_ms(large, MetricsFormat::kOpenMetrics);
  fmt::print("  a page of {} series: {:.3f} ms, {:.3f} ms with exemplars\n", large.n_lines(), plain,
             open);
  fmt::print("RESULT {{{}\"series\": {}, \"page_ms\": {:.4f}, \"open_metrics_page_ms\": {:.4f}}}\n",
             result, large.n_lines(), plain, open);
}

}  // namespace
}  // namespace triptych

int main() { triptych::run(); }
