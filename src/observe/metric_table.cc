#include "observe/metric_table.h"

namespace triptych {
namespace {

namespace buckets {
constexpr std::span<const double> kNone = {};
#define TRIPTYCH_METRIC(kind, id, name, labels, buckets, help)
#define TRIPTYCH_BUCKETS(id, ...)                \
  constexpr double id##_edges[] = {__VA_ARGS__}; \
  constexpr std::span<const double> id = id##_edges;
#include "observe/metrics.def"
#undef TRIPTYCH_BUCKETS
#undef TRIPTYCH_METRIC
}  // namespace buckets

constexpr MetricFamily kTable[] = {
#define TRIPTYCH_BUCKETS(id, ...)
#define TRIPTYCH_METRIC(kind, id, name, labels, edges, help) \
  {MetricKind::kind, name, labels, buckets::edges, help},
#include "observe/metrics.def"
#undef TRIPTYCH_METRIC
#undef TRIPTYCH_BUCKETS
};

}  // namespace

const MetricFamily& family_of(Metric metric) { return kTable[static_cast<size_t>(metric)]; }

std::span<const MetricFamily> metric_table() { return kTable; }

}  // namespace triptych
