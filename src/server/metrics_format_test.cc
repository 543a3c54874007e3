#include <gtest/gtest.h>

#include "server/server_metrics.h"

namespace triptych {
namespace {

MetricsFormat format_for(const std::string& accept) { return metrics_format_for(&accept); }

TEST(MetricsFormat, WhoAsksForNothingGetsPrometheusText) {
  EXPECT_EQ(metrics_format_for(nullptr), MetricsFormat::kPrometheus);
  for (const char* accept : {"", "*/*", "text/plain", "text/html,application/json;q=0.9,*/*;q=0.8",
                             ";;,,q=1", "application/openmetrics-text;q=0"}) {
    EXPECT_EQ(format_for(accept), MetricsFormat::kPrometheus) << accept;
  }
}

TEST(MetricsFormat, PrometheusItselfPrefersOpenMetrics) {
  EXPECT_EQ(format_for("application/openmetrics-text;version=1.0.0,application/"
                       "openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/"
                       "*;q=0.1"),
            MetricsFormat::kOpenMetrics);
  EXPECT_EQ(format_for("application/openmetrics-text; version=1.0.0; escaping=allow-utf-8; q=0.6, "
                       "text/plain; version=0.0.4; q=0.3"),
            MetricsFormat::kOpenMetrics);
  EXPECT_EQ(format_for("Application/OpenMetrics-Text"), MetricsFormat::kOpenMetrics);
}

TEST(MetricsFormat, TheGladlierOneWins) {
  EXPECT_EQ(format_for("text/plain;version=0.0.4, application/openmetrics-text;version=1.0.0;q=.5"),
            MetricsFormat::kPrometheus);
  EXPECT_EQ(format_for("application/openmetrics-text;version=0.0.1"), MetricsFormat::kPrometheus)
      << "a version that we do not write";
}

TEST(MetricsFormat, ItsTypeSaysWhichOneItIs) {
  EXPECT_EQ(metrics_content_type(MetricsFormat::kPrometheus),
            "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(metrics_content_type(MetricsFormat::kOpenMetrics),
            "application/openmetrics-text; version=1.0.0; charset=utf-8");
}

}  // namespace
}  // namespace triptych
