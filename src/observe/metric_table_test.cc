#include "observe/metric_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "observe/test_metrics_page.h"

namespace triptych {
namespace {

using testing::Contains;
using testing::IsEmpty;

size_t n_names(std::string_view labels) {
  return labels.empty() ? 0
                        : 1 + static_cast<size_t>(std::count(labels.begin(), labels.end(), ','));
}

TEST(MetricTable, NamesKeepToTheConventions) {
  std::set<std::string_view> names;
  for (const MetricFamily& family : metric_table()) {
    SCOPED_TRACE(family.name);
    EXPECT_TRUE(names.insert(family.name).second);
    EXPECT_FALSE(family.help.empty());
    EXPECT_EQ(family.name.ends_with("_total"), family.kind == MetricKind::kCounter);
    EXPECT_EQ(family.edges.empty(), family.kind != MetricKind::kHistogram);
    EXPECT_TRUE(std::is_sorted(family.edges.begin(), family.edges.end()));
    EXPECT_EQ(std::adjacent_find(family.edges.begin(), family.edges.end()), family.edges.end());
    EXPECT_TRUE(family.name.starts_with("triptych_") || family.name.starts_with("process_") ||
                family.name.starts_with("vllm:"));
    for (const std::string_view unit : {"_ms", "milliseconds", "percent", "kilobytes"}) {
      EXPECT_EQ(family.name.find(unit), std::string_view::npos);
    }
  }
}

TEST(MetricTable, LimitsOfServiceLevelsAreEdges) {
  EXPECT_THAT(family_of(Metric::kTimeToFirstToken).edges, Contains(0.45));
  EXPECT_THAT(family_of(Metric::kTimePerOutputToken).edges, Contains(0.04));
  EXPECT_THAT(family_of(Metric::kInterTokenLatency).edges, Contains(0.04));
}

TEST(MetricTable, AllOfItMakesAPageThatScrapersTake) {
  MetricsRegistry registry;
  for (const MetricFamily& family : metric_table()) {
    const MetricsRegistry::Labels labels(n_names(family.labels), "x");
    if (family.kind == MetricKind::kCounter) registry.counter(family, labels)->add();
    if (family.kind == MetricKind::kGauge) registry.gauge(family, labels)->set(0.5);
    if (family.kind == MetricKind::kHistogram) registry.histogram(family, labels)->observe(0.5);
  }
  EXPECT_TRUE(registry.status().is_ok()) << registry.status().message();
  for (const MetricsFormat format : {MetricsFormat::kPrometheus, MetricsFormat::kOpenMetrics}) {
    const MetricsPage page(registry.render(format), format);
    EXPECT_THAT(page.faults(), IsEmpty());
    EXPECT_EQ(page.types().size(), metric_table().size());
  }
}

}  // namespace
}  // namespace triptych
