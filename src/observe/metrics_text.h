#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "observe/metrics.h"

// The two text formats of metrics, which differ in little: Prometheus' exposition format 0.0.4 and
// OpenMetrics 1.0.

namespace triptych::metrics_text {

/// `model="demo",code="2xx"` from names with commas between and as many values. What a value may
/// not hold is escaped, and bytes that are no UTF-8 become question marks.
std::string label_pairs(std::string_view names, const std::vector<std::string_view>& values);

/// What stands in front of each number of a series, in the order of the lines: the sample's name,
/// its labels and a blank.
std::vector<std::string> line_heads(const MetricFamily& family, const std::string& labels);

/// The two comments in front of a family's lines.
void append_family(std::string& out, const MetricFamily& family, MetricsFormat format);
void append(std::string& out, uint64_t number);
void append(std::string& out, double number);
/// The lines of a histogram behind their `heads`.
void append(std::string& out, const Histogram& histogram, const std::vector<std::string>& heads,
            MetricsFormat format);

}  // namespace triptych::metrics_text
