#pragma once

#include <cstdint>
#include <span>

#include "observe/metrics.h"

namespace triptych {

/// The metrics of this program (metrics.def).
enum class Metric : uint8_t {
#define TRIPTYCH_BUCKETS(id, ...)
#define TRIPTYCH_METRIC(kind, id, name, labels, buckets, help) id,
#include "observe/metrics.def"
#undef TRIPTYCH_METRIC
#undef TRIPTYCH_BUCKETS
};

const MetricFamily& family_of(Metric metric);
/// All of them, in their order.
std::span<const MetricFamily> metric_table();

}  // namespace triptych
