#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "observe/metric_cells.h"

namespace triptych {

enum class MetricKind : uint8_t { kCounter, kGauge, kHistogram };
/// "counter", "gauge", "histogram".
std::string_view metric_kind_name(MetricKind kind);

/// What all series of a name share (metric_table.h has those of this program). Its texts and edges
/// outlive the registry.
struct MetricFamily {
  MetricKind kind = MetricKind::kCounter;
  std::string_view name;          ///< base units; a counter's ends in "_total"
  std::string_view labels;        ///< their names with commas between; empty: one series
  std::span<const double> edges;  ///< of a histogram's buckets: upper, inclusive, ascending, finite
  std::string_view help;
};

/// How a page of metrics is written: Prometheus' text format 0.0.4, or OpenMetrics 1.0, which has
/// exemplars.
enum class MetricsFormat : uint8_t { kPrometheus, kOpenMetrics };

/// A count that never falls. Thread-safe and lock-free, as a gauge is.
class Counter {
 public:
  explicit Counter(MetricCells::Cell* cells) : cells_(cells) {}

  void add(uint64_t n = 1) {
    cells_[MetricCells::shard_offset()].fetch_add(n, std::memory_order_relaxed);
  }
  /// Takes over a count that is kept elsewhere, which may be older than what is here. Not together
  /// with add().
  void raise_to(uint64_t total);
  uint64_t value() const { return MetricCells::total(cells_); }

 private:
  MetricCells::Cell* cells_;
};

class Gauge {
 public:
  explicit Gauge(MetricCells::Cell* cell) : cell_(cell) {}

  void set(double value) {
    cell_->store(std::bit_cast<uint64_t>(value), std::memory_order_relaxed);
  }
  double value() const { return std::bit_cast<double>(cell_->load(std::memory_order_relaxed)); }

 private:
  MetricCells::Cell* cell_;
};

/// How often values fell into which bucket, and their sum. Thread-safe; lock-free without an id.
class Histogram {
 public:
  /// What was behind a value: the latest of a bucket is kept.
  struct Exemplar {
    std::string id;  ///< empty: there has been none
    double value = 0;
    double seconds = 0;  ///< since 1970
  };

  /// `cells`: one a bucket, +Inf included, and one for the sum.
  Histogram(std::span<const double> edges, MetricCells::Cell* cells)
      : edges_(edges), cells_(cells), exemplars_(std::make_unique<Exemplars>(edges.size() + 1)) {}

  /// Takes a value in; what is not a number is left out.
  void observe(double value);
  /// The same, and `id` (at most kLongestId bytes, or it is left out) says whose value it is.
  void observe(double value, std::string_view id);
  static constexpr size_t kLongestId = 64;  ///< OpenMetrics: 128 with the label's name

  size_t n_buckets() const { return edges_.size() + 1; }
  /// Values in one bucket, those below left out.
  uint64_t count(size_t bucket) const { return MetricCells::total(cells_ + bucket); }
  uint64_t count() const;
  double sum() const;
  std::vector<Exemplar> exemplars() const;  ///< by bucket

 private:
  struct Exemplars {
    explicit Exemplars(size_t n) : by_bucket(n) {}
    std::mutex mutex;
    std::vector<Exemplar> by_bucket;
  };
  size_t bucket_of(double value) const;

  std::span<const double> edges_;
  MetricCells::Cell* cells_;
  std::unique_ptr<Exemplars> exemplars_;
};

/// All metrics of a program. Series are made once, with their labels, and belong to the registry;
/// what changes them takes no lock. What a series is asked for wrongly (another kind or number of
/// labels than its family has, more than kMostLines) is no fault of whoever counts: he gets one
/// that is not shown, and status() says what was wrong. Thread-safe.
class MetricsRegistry {
 public:
  static constexpr size_t kMostLines = 5000;  ///< of a page, comments left out

  MetricsRegistry();
  ~MetricsRegistry();
  MetricsRegistry(const MetricsRegistry&) = delete;
  MetricsRegistry& operator=(const MetricsRegistry&) = delete;

  using Labels = std::vector<std::string_view>;  ///< values, in the order of the family's names
  /// Never null; the same for the same family and labels.
  Counter* counter(const MetricFamily& family, const Labels& labels = {});
  Gauge* gauge(const MetricFamily& family, const Labels& labels = {});
  Histogram* histogram(const MetricFamily& family, const Labels& labels = {});

  /// The first thing that was wrong with a series (kInternal, or kOutOfRange for too many).
  Status status() const;
  size_t n_lines() const;
  /// A page with all series, families in the order in which they were first asked for.
  std::string render(MetricsFormat format) const;

 private:
  struct Series;
  struct Family;
  Series* find_or_make(MetricKind kind, const MetricFamily& family, const Labels& labels);
  Result<Series*> make(MetricKind kind, const MetricFamily& family, const Labels& labels);
  std::unique_ptr<Series> new_series(const MetricFamily& family, const std::string& labels);

  mutable std::mutex mutex_;
  MetricCells cells_;
  Status status_;
  size_t n_lines_ = 0;
  size_t n_bytes_ = 0;  ///< of a page, about
  std::vector<std::unique_ptr<Family>> families_;
  std::map<std::string_view, Family*> by_name_;
  std::array<std::unique_ptr<Series>, 3> spares_;  ///< by MetricKind: not shown
};

}  // namespace triptych
