#include "observe/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "observe/metrics_text.h"

namespace triptych {
namespace {

using Cell = MetricCells::Cell;

/// The sum of doubles that are kept as the bits of cells.
void add_double(Cell& cell, double value) {
  uint64_t bits = cell.load(std::memory_order_relaxed);
  while (!cell.compare_exchange_weak(bits,
                                     std::bit_cast<uint64_t>(std::bit_cast<double>(bits) + value),
                                     std::memory_order_relaxed)) {
  }
}

size_t n_labels(std::string_view names) {
  if (names.empty()) return 0;
  return 1 + static_cast<size_t>(std::count(names.begin(), names.end(), ','));
}

}  // namespace

MetricCells::Cell* MetricCells::take(size_t n) {
  if (n_taken_ + n > kStride) {
    chunks_.push_back(std::make_unique<Chunk>());
    n_taken_ = 0;
  }
  Cell* out = chunks_.back()->cells.data() + n_taken_;
  n_taken_ += n;
  return out;
}

uint32_t MetricCells::number_thread() {
  static std::atomic<uint32_t> n_threads = 0;  // one after the other, so that shards fill evenly
  return n_threads.fetch_add(1, std::memory_order_relaxed) % (kShards << 16) + 1;
}

std::string_view metric_kind_name(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return "counter";
    case MetricKind::kGauge:
      return "gauge";
    case MetricKind::kHistogram:
      return "histogram";
  }
  return "";
}

void Counter::raise_to(uint64_t total) {
  uint64_t now = cells_->load(std::memory_order_relaxed);
  while (now < total && !cells_->compare_exchange_weak(now, total, std::memory_order_relaxed)) {
  }
}

size_t Histogram::bucket_of(double value) const {
  return static_cast<size_t>(std::lower_bound(edges_.begin(), edges_.end(), value) -
                             edges_.begin());
}

void Histogram::observe(double value) {
  if (std::isnan(value)) return;
  Cell* cells = cells_ + MetricCells::shard_offset();
  cells[bucket_of(value)].fetch_add(1, std::memory_order_relaxed);
  add_double(cells[edges_.size() + 1], value);
}

void Histogram::observe(double value, std::string_view id) {
  observe(value);
  if (std::isnan(value) || id.empty() || id.size() > kLongestId) return;
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  const std::lock_guard lock(exemplars_->mutex);
  Exemplar& latest = exemplars_->by_bucket[bucket_of(value)];
  latest.id = id;  // into memory that it has
  latest.value = value;
  latest.seconds = now.count();
}

uint64_t Histogram::count() const {
  uint64_t out = 0;
  for (size_t i = 0; i < n_buckets(); ++i) out += count(i);
  return out;
}

double Histogram::sum() const {
  double out = 0;
  const Cell* first = cells_ + edges_.size() + 1;
  for (size_t shard = 0; shard < MetricCells::kShards; ++shard) {
    out +=
        std::bit_cast<double>(first[shard * MetricCells::kStride].load(std::memory_order_relaxed));
  }
  return out;
}

std::vector<Histogram::Exemplar> Histogram::exemplars() const {
  const std::lock_guard lock(exemplars_->mutex);
  return exemplars_->by_bucket;
}

struct MetricsRegistry::Series {
  std::string labels;
  std::vector<std::string> heads;  ///< of its lines (metrics_text::line_heads)
  Counter counter;                 ///< of these three the one that the family's kind names
  Gauge gauge;
  std::optional<Histogram> histogram;
};

struct MetricsRegistry::Family {
  MetricFamily info;
  std::vector<std::unique_ptr<Series>> series;
  std::map<std::string_view, Series*> by_labels;
};

MetricsRegistry::MetricsRegistry() {
  for (size_t kind = 0; kind < spares_.size(); ++kind) {
    spares_[kind] = new_series({.kind = static_cast<MetricKind>(kind)}, "");
  }
}

MetricsRegistry::~MetricsRegistry() = default;

std::unique_ptr<MetricsRegistry::Series> MetricsRegistry::new_series(const MetricFamily& family,
                                                                     const std::string& labels) {
  std::vector<std::string> heads = metrics_text::line_heads(family, labels);
  const size_t n_buckets = family.edges.size() + 1;
  const bool is_histogram = family.kind == MetricKind::kHistogram;
  Cell* cells = cells_.take(is_histogram ? n_buckets + 1 : 1);
  auto out = std::make_unique<Series>(
      Series{labels, std::move(heads), Counter(cells), Gauge(cells), std::nullopt});
  if (is_histogram) out->histogram.emplace(family.edges, cells);
  return out;
}

Result<MetricsRegistry::Series*> MetricsRegistry::make(MetricKind kind, const MetricFamily& family,
                                                       const Labels& labels) {
  if (family.kind != kind || n_labels(family.labels) != labels.size()) {
    return internal_error(fmt::format("metric {} is a {} with the labels \"{}\", not a {} with {}",
                                      family.name, metric_kind_name(family.kind), family.labels,
                                      metric_kind_name(kind), labels.size()));
  }
  const auto [entry, is_new] = by_name_.try_emplace(family.name, nullptr);
  if (is_new) {
    families_.push_back(std::make_unique<Family>(Family{family, {}, {}}));
    entry->second = families_.back().get();
  }
  Family& known = *entry->second;
  if (known.info.kind != family.kind || known.info.labels != family.labels ||
      known.info.edges.data() != family.edges.data()) {
    return internal_error(fmt::format("there are two metrics of the name {}", family.name));
  }
  const std::string pairs = metrics_text::label_pairs(family.labels, labels);
  if (const auto found = known.by_labels.find(pairs); found != known.by_labels.end()) {
    return found->second;
  }
  const size_t n = kind == MetricKind::kHistogram ? family.edges.size() + 3 : 1;
  if (n_lines_ + n > kMostLines) {
    return out_of_range(fmt::format("metric {}{{{}}}: there are {} lines of metrics, the limit {}",
                                    family.name, pairs, n_lines_, kMostLines));
  }
  n_lines_ += n;
  known.series.push_back(new_series(family, pairs));
  Series* out = known.series.back().get();
  known.by_labels.emplace(out->labels, out);
  constexpr size_t kDigits = 12;
  for (const std::string& head : out->heads) n_bytes_ += head.size() + kDigits;
  return out;
}

MetricsRegistry::Series* MetricsRegistry::find_or_make(MetricKind kind, const MetricFamily& family,
                                                       const Labels& labels) {
  const std::lock_guard lock(mutex_);
  const Result<Series*> made = make(kind, family, labels);
  if (made.is_ok()) return *made;
  if (status_.is_ok()) status_ = made.status();
  return spares_[static_cast<size_t>(kind)].get();
}

Counter* MetricsRegistry::counter(const MetricFamily& family, const Labels& labels) {
  return &find_or_make(MetricKind::kCounter, family, labels)->counter;
}

Gauge* MetricsRegistry::gauge(const MetricFamily& family, const Labels& labels) {
  return &find_or_make(MetricKind::kGauge, family, labels)->gauge;
}

Histogram* MetricsRegistry::histogram(const MetricFamily& family, const Labels& labels) {
  return &*find_or_make(MetricKind::kHistogram, family, labels)->histogram;
}

Status MetricsRegistry::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

size_t MetricsRegistry::n_lines() const {
  const std::lock_guard lock(mutex_);
  return n_lines_;
}

std::string MetricsRegistry::render(MetricsFormat format) const {
  const std::lock_guard lock(mutex_);
  std::string out;
  constexpr size_t kCommentBytes = 200;
  out.reserve(n_bytes_ + kCommentBytes * families_.size());
  for (const auto& family : families_) {
    if (family->series.empty()) continue;
    metrics_text::append_family(out, family->info, format);
    for (const auto& series : family->series) {
      if (series->histogram) {
        metrics_text::append(out, *series->histogram, series->heads, format);
        continue;
      }
      out += series->heads.front();
      if (family->info.kind == MetricKind::kCounter) {
        metrics_text::append(out, series->counter.value());
      } else {
        metrics_text::append(out, series->gauge.value());
      }
      out += '\n';
    }
  }
  if (format == MetricsFormat::kOpenMetrics) out += "# EOF\n";
  return out;
}

}  // namespace triptych
