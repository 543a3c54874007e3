#include "observe/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <thread>

#include "observe/test_metrics_page.h"

namespace triptych {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr double kEdges[] = {0.1, 1, 10};
constexpr MetricFamily kPlain{MetricKind::kCounter, "plain_total", "", {}, "counts"};
constexpr MetricFamily kLabelled{
    MetricKind::kCounter, "labelled_total", "model,code", {}, "counts"};
constexpr MetricFamily kLevel{MetricKind::kGauge, "level", "", {}, "a level"};
constexpr MetricFamily kTimes{MetricKind::kHistogram, "times_seconds", "model", kEdges, "times"};

std::vector<std::string> faults_of(const MetricsRegistry& registry) {
  std::vector<std::string> out;
  for (const MetricsFormat format : {MetricsFormat::kPrometheus, MetricsFormat::kOpenMetrics}) {
    const MetricsPage page(registry.render(format), format);
    out.insert(out.end(), page.faults().begin(), page.faults().end());
  }
  return out;
}

TEST(Metrics, APageInBothFormats) {
  MetricsRegistry registry;
  registry.counter(kLabelled, {"demo", "2xx"})->add(3);
  registry.gauge(kLevel)->set(0.25);
  Histogram* times = registry.histogram(kTimes, {"demo"});
  times->observe(0.5);
  times->observe(20);
  const std::string samples =
      "labelled_total{model=\"demo\",code=\"2xx\"} 3\n"
      "# HELP level a level\n# TYPE level gauge\n"
      "level 0.25\n"
      "# HELP times_seconds times\n# TYPE times_seconds histogram\n"
      "times_seconds_bucket{model=\"demo\",le=\"0.1\"} 0\n"
      "times_seconds_bucket{model=\"demo\",le=\"1.0\"} 1\n"
      "times_seconds_bucket{model=\"demo\",le=\"10.0\"} 1\n"
      "times_seconds_bucket{model=\"demo\",le=\"+Inf\"} 2\n"
      "times_seconds_sum{model=\"demo\"} 20.5\n"
      "times_seconds_count{model=\"demo\"} 2\n";
  EXPECT_EQ(registry.render(MetricsFormat::kPrometheus),
            "# HELP labelled_total counts\n# TYPE labelled_total counter\n" + samples);
  EXPECT_EQ(registry.render(MetricsFormat::kOpenMetrics),
            "# HELP labelled counts\n# TYPE labelled counter\n" + samples + "# EOF\n");
  EXPECT_EQ(registry.n_lines(), 8u);
  EXPECT_THAT(faults_of(registry), IsEmpty());
}

TEST(Metrics, LabelsAndHelpAreEscaped) {
  constexpr MetricFamily kOdd{MetricKind::kGauge, "odd", "name", {}, "a \"b\"\nc\\d"};
  MetricsRegistry registry;
  registry.gauge(kOdd, {"a\"b\\c\nd"})->set(1);
  registry.gauge(kOdd, {"\xc3\xa9\xff\xed\xa0\x80\xe2\x82"})->set(2);
  const std::string plain = registry.render(MetricsFormat::kPrometheus);
  EXPECT_THAT(plain, HasSubstr("# HELP odd a \"b\"\\nc\\\\d\n"));
  EXPECT_THAT(plain, HasSubstr("odd{name=\"a\\\"b\\\\c\\nd\"} 1\n"));
  EXPECT_THAT(plain, HasSubstr("odd{name=\"\xc3\xa9??????\"} 2\n")) << "no UTF-8 stays in";
  EXPECT_THAT(registry.render(MetricsFormat::kOpenMetrics),
              HasSubstr("# HELP odd a \\\"b\\\"\\nc\\\\d\n"));
  EXPECT_THAT(faults_of(registry), IsEmpty());
}

TEST(Metrics, NumbersComeBackAsTheyWere) {
  MetricsRegistry registry;
  Gauge* level = registry.gauge(kLevel);
  for (const double value : {0.0, -1.5, 1e300, 0.1, 1764589429.125, 123456789012.0,
                             std::numeric_limits<double>::infinity()}) {
    level->set(value);
    const MetricsPage page(registry.render(MetricsFormat::kPrometheus), MetricsFormat::kPrometheus);
    EXPECT_EQ(page.value("level"), value);
  }
  level->set(std::nan(""));
  EXPECT_THAT(registry.render(MetricsFormat::kPrometheus), HasSubstr("level NaN\n"));
  Counter* count = registry.counter(kPlain);
  count->add(uint64_t{1} << 60);
  EXPECT_THAT(registry.render(MetricsFormat::kPrometheus),
              HasSubstr("plain_total 1152921504606846976\n"));
}

TEST(Metrics, AnEdgeBelongsToItsBucket) {
  MetricsRegistry registry;
  Histogram* times = registry.histogram(kTimes, {"demo"});
  for (const double value : {-1.0, 0.1, 0.1000001, 1.0, 10.0, 10.5}) times->observe(value);
  times->observe(std::nan(""));
  EXPECT_EQ(times->count(0), 2u);
  EXPECT_EQ(times->count(1), 2u);
  EXPECT_EQ(times->count(2), 1u);
  EXPECT_EQ(times->count(3), 1u);
  EXPECT_EQ(times->count(), 6u);
  EXPECT_DOUBLE_EQ(times->sum(), -1.0 + 0.1 + 0.1000001 + 1 + 10 + 10.5);
}

TEST(Metrics, ExemplarsStandInOpenMetricsAlone) {
  MetricsRegistry registry;
  Histogram* times = registry.histogram(kTimes, {"demo"});
  times->observe(0.5, "first");
  times->observe(0.6, "second");
  times->observe(5, std::string(Histogram::kLongestId + 1, 'x'));
  const MetricsPage open(registry.render(MetricsFormat::kOpenMetrics), MetricsFormat::kOpenMetrics);
  EXPECT_THAT(open.faults(), IsEmpty());
  EXPECT_THAT(open.exemplars(),
              ElementsAre(HasSubstr("times_seconds_bucket # {request_id=\"second\"} 0.6 ")));
  EXPECT_THAT(registry.render(MetricsFormat::kPrometheus), Not(HasSubstr("request_id")));
  EXPECT_EQ(times->count(), 3u);
}

TEST(Metrics, TheSameLabelsAreTheSameSeries) {
  MetricsRegistry registry;
  EXPECT_EQ(registry.counter(kLabelled, {"a", "b"}), registry.counter(kLabelled, {"a", "b"}));
  EXPECT_NE(registry.counter(kLabelled, {"a", "b"}), registry.counter(kLabelled, {"a", "c"}));
  EXPECT_EQ(registry.n_lines(), 2u);
  EXPECT_TRUE(registry.status().is_ok());
}

TEST(Metrics, ASeriesThatDoesNotFitIsNotShown) {
  {
    MetricsRegistry registry;
    registry.counter(kLabelled, {"a"})->add();
    EXPECT_EQ(registry.status().code(), StatusCode::kInternal);
    EXPECT_THAT(registry.status().message(), HasSubstr("labelled_total"));
    EXPECT_EQ(registry.render(MetricsFormat::kPrometheus), "");
  }
  {
    MetricsRegistry registry;
    registry.gauge(kPlain)->set(1);
    EXPECT_EQ(registry.status().code(), StatusCode::kInternal);
  }
  {
    MetricsRegistry registry;
    registry.counter(kPlain);
    registry.gauge({MetricKind::kGauge, "plain_total", "", {}, ""})->set(1);
    EXPECT_THAT(registry.status().message(), HasSubstr("two metrics"));
    EXPECT_THAT(faults_of(registry), IsEmpty());
  }
}

TEST(Metrics, APageHasALimit) {
  MetricsRegistry registry;
  for (size_t i = 0; i < MetricsRegistry::kMostLines; ++i) {
    registry.counter(kLabelled, {std::to_string(i), ""});
  }
  EXPECT_TRUE(registry.status().is_ok());
  registry.counter(kPlain)->add();
  EXPECT_EQ(registry.status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(registry.n_lines(), MetricsRegistry::kMostLines);
  EXPECT_THAT(registry.render(MetricsFormat::kPrometheus), Not(HasSubstr("plain_total")));
}

TEST(Metrics, ACountThatIsTakenOverNeverFalls) {
  MetricsRegistry registry;
  Counter* count = registry.counter(kPlain);
  count->raise_to(7);
  count->raise_to(5);
  EXPECT_EQ(count->value(), 7u);
}

TEST(Metrics, ManyThreadsLoseNothing) {
  constexpr int kThreads = 6;  // more than there are shards
  constexpr uint64_t kEach = 20000;
  MetricsRegistry registry;
  Counter* count = registry.counter(kPlain);
  Histogram* times = registry.histogram(kTimes, {"demo"});
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kEach; ++i) {
        count->add();
        times->observe(i % 2 == 0 ? 0.5 : 2.0);
        if (i % 1000 == 0) times->observe(20, "some");
        if (i % 5000 == 0) registry.gauge(kLevel)->set(t);
      }
    });
  }
  double before = 0;
  for (int i = 0; i < 20; ++i) {  // pages of a registry that changes are whole, and counts rise
    const std::string text = registry.render(MetricsFormat::kOpenMetrics);
    const MetricsPage page(text, MetricsFormat::kOpenMetrics);
    EXPECT_THAT(page.faults(), IsEmpty());
    EXPECT_GE(page.value("plain_total"), before);
    before = page.value("plain_total");
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count->value(), kThreads * kEach);
  EXPECT_EQ(times->count(1), kThreads * kEach / 2);
  EXPECT_EQ(times->count(), kThreads * (kEach + kEach / 1000));
  EXPECT_DOUBLE_EQ(times->sum(), kThreads * (kEach * 1.25 + kEach / 1000 * 20.0));
}

}  // namespace
}  // namespace triptych
