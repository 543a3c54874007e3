// What the server with the demo model behind it says of itself at /metrics (field case F71).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "cli/serve.h"
#include "observe/metric_table.h"
#include "observe/test_metrics_page.h"
#include "server/http/test_client.h"

namespace triptych::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kOpenMetrics = "Accept: application/openmetrics-text; version=1.0.0\r\n";
constexpr const char* kRedSquare =
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mM4ISdHEmIY1TCqYfhqAADkYgQQ6ZuA8QAA"
    "AABJRU5ErkJggg==";

constexpr const char* kBlueSquare =  // shown in one test, so that no cache knows it
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mOQkztBEmIY1TCqYfhqAACQUwQQlNl6vgAA"
    "AABJRU5ErkJggg==";

class ServeMetrics : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    session_ = Session::open({.model = "models/demo", .max_sequences = 2}).value();
    model_ = std::make_unique<ServedModel>(
        ServedModel{.names = {"demo", "other"},
                    .engine = nullptr,
                    .prep = session_->shared_prep(),
                    .defaults = default_sampling(session_->runner().model().spec),
                    .context_tokens = session_->context_tokens(),
                    .loaded = 1});
    model_->engine = session_->start(1);  // request at a time
  }
  static void TearDownTestSuite() {
    model_.reset();
    session_.reset();
  }

  ServeMetrics()
      : service_({*model_}, access_, registry_),
        server_(http::Server::start({.port = 0}, {}, callbacks_of(service_)).value()) {}

  std::string ask(std::string request, const std::string& header = {}) {
    request.insert(request.find("\r\n") + 2, header);
    http::TestClient client(server_->port());
    client.send(request);
    return client.receive_all();
  }
  std::string chat(const std::string& fields) {
    const std::string body = R"({"model": "other", )" + fields + "}";
    n_body_bytes_ += body.size();
    return ask(http::post(kChat, body));
  }
  static std::string square(const std::string& fields, const char* png = kRedSquare) {
    return R"("messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url":
      "data:image/png;base64,)" +
           std::string(png) +
           R"("}}, {"type": "text", "text": "What color is it?"}]}], "ignore_eos": true, )" +
           fields;
  }
  static std::string body_of(const std::string& answer) {
    return answer.substr(answer.find("\r\n\r\n") + 4);
  }
  MetricsPage scrape() {
    MetricsPage page(body_of(ask(http::get("/metrics"))), MetricsFormat::kPrometheus);
    EXPECT_THAT(page.faults(), IsEmpty());
    return page;
  }
  /// Once a sample has that value, or after ten seconds.
  MetricsPage scrape_until(const std::string& sample, double value) {
    for (int i = 0; i < 1000; ++i) {
      MetricsPage page = scrape();
      if (page.value(sample) == value) return page;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return scrape();
  }
  static std::string sample(const std::string& name) { return name + "{model_name=\"demo\"}"; }
  static std::string requests(const std::string& code, const std::string& finish) {
    return std::string("triptych_requests_total{model_name=\"demo\",route=\"") + kChat +
           "\",code=\"" + code + "\",finish_reason=\"" + finish + "\"}";
  }
  static std::string http_requests(const std::string& route, const std::string& code) {
    return "triptych_http_requests_total{route=\"" + route + "\",code=\"" + code + "\"}";
  }
  static std::string refusals(const std::string& reason) {
    return "triptych_refused_requests_total{reason=\"" + reason + "\"}";
  }

  static inline std::unique_ptr<Session> session_;
  static inline std::unique_ptr<ServedModel> model_;
  AccessControl access_;
  MetricsRegistry registry_;
  Service service_;
  std::unique_ptr<http::Server> server_;
  uint64_t n_body_bytes_ = 0;
};

struct UsageSums {
  int64_t prompt = 0;
  int64_t completion = 0;
  int64_t image = 0;
  int64_t cached = 0;

  void add(const Json& answer) {
    const Json& usage = *answer.find("usage");
    const Json& details = *usage.find("prompt_tokens_details");
    prompt += usage.find("prompt_tokens")->int_value();
    completion += usage.find("completion_tokens")->int_value();
    image += details.find("image_tokens")->int_value();
    cached += details.find("cached_tokens")->int_value();
  }
};

TEST_F(ServeMetrics, CountsWhatRequestsWere) {
  const MetricsPage before = scrape();
  UsageSums usage;
  usage.add(*parse_json(body_of(chat(square(R"("max_tokens": 3)", kBlueSquare)))));
  // The same picture as a stream; the last chunk but one has the counts.
  const std::string stream =
      chat(square(R"("max_tokens": 4, "stream": true, "stream_options": {"include_usage": true})",
                  kBlueSquare));
  const size_t counts = stream.rfind("data: {");
  usage.add(*parse_json(stream.substr(counts + 6, stream.find('\n', counts) - counts - 6)));
  std::string words;
  for (int i = 0; i < 3000; ++i) words += "red ";
  EXPECT_THAT(chat(R"("messages": [{"role": "user", "content": ")" + words + "\"}]"),
              StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask(http::get("/v1/nothing")), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask(http::get(kChat)), StartsWith("HTTP/1.1 405 "));

  const MetricsPage after = scrape();
  const auto rise = [&](const std::string& name) { return after.value(name) - before.value(name); };
  EXPECT_EQ(rise(http_requests(kChat, "2xx")), 2);
  EXPECT_EQ(rise(http_requests(kChat, "4xx")), 1);
  EXPECT_EQ(rise(http_requests("other", "4xx")), 2);
  EXPECT_EQ(rise(http_requests("/metrics", "2xx")), 1);
  EXPECT_EQ(rise(requests("2xx", "length")), 2);
  EXPECT_EQ(rise(requests("2xx", "stop")), 0);
  EXPECT_EQ(rise(requests("4xx", "error")), 1);
  EXPECT_EQ(rise(refusals("limits")), 1);
  EXPECT_EQ(rise(refusals("queue_full")), 0);
  EXPECT_EQ(rise("triptych_http_request_body_bytes_total"), static_cast<double>(n_body_bytes_));
  // Sums of what the answers said.
  EXPECT_EQ(usage.completion, 7);
  EXPECT_GT(usage.cached, 0);
  EXPECT_EQ(rise(sample("triptych_prompt_tokens_total")), usage.prompt);
  EXPECT_EQ(rise(sample("triptych_generation_tokens_total")), usage.completion);
  const std::string image = "{model_name=\"demo\",modality=\"image\"}";
  EXPECT_EQ(rise("triptych_media_tokens_total" + image), usage.image);
  EXPECT_EQ(rise(sample("triptych_prefix_cache_queries_total")), usage.prompt);
  EXPECT_EQ(rise(sample("triptych_prefix_cache_hits_total")), usage.cached);
  EXPECT_EQ(rise("triptych_encoder_cache_queries_total" + image), 1) << "the second was a prefix";
  // One value a request, choice or token.
  EXPECT_EQ(rise(sample("triptych_time_to_first_token_seconds_count")), 2);
  EXPECT_EQ(rise(sample("triptych_time_per_output_token_seconds_count")), 2);
  EXPECT_EQ(rise(sample("triptych_inter_token_latency_seconds_count")), 2 + 3);
  for (const char* name : {"queue_time", "media_decode_time", "encode_time", "prefill_time",
                           "decode_time", "duration"}) {
    EXPECT_EQ(rise(sample("triptych_request_" + std::string(name) + "_seconds_count")), 2) << name;
  }
  EXPECT_GT(rise(sample("triptych_request_encode_time_seconds_sum")), 0);
  EXPECT_GE(rise(sample("triptych_request_duration_seconds_sum")),
            rise(sample("triptych_time_to_first_token_seconds_sum")));
}

TEST_F(ServeMetrics, ShowsWhatIsInWorkAndWhatIsTurnedAway) {
  const MetricsPage idle = scrape_until("triptych_http_connections", 1);
  EXPECT_EQ(idle.value("triptych_http_connections"), 1) << "the scraper's own";
  EXPECT_EQ(idle.value(sample("triptych_requests_running")), 0);
  EXPECT_EQ(idle.value(sample("triptych_kv_cache_usage_ratio")), 0);
  EXPECT_GT(idle.value(sample("triptych_kv_cache_pages")), 0);
  EXPECT_GT(idle.value("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GT(idle.value("process_start_time_seconds"), 1.6e9);

  http::TestClient client(server_->port());
  client.send(http::post(kChat, R"({"model": "demo", "stream": true, "max_tokens": 1500, )" +
                                    square(R"("temperature": 0)") + "}"));
  client.receive_until("data: ");
  const MetricsPage busy = scrape();
  EXPECT_EQ(busy.value(sample("triptych_requests_running")), 1);
  EXPECT_EQ(busy.value(sample("vllm:num_requests_running")), 1);
  EXPECT_EQ(busy.value(sample("vllm:num_requests_waiting")), 0);
  EXPECT_GT(busy.value(sample("triptych_kv_cache_used_pages")), 576 / 16);
  EXPECT_EQ(busy.value(sample("triptych_kv_cache_usage_ratio")),
            busy.value(sample("vllm:kv_cache_usage_perc")));
  EXPECT_THAT(chat(square(R"("max_tokens": 1)")), StartsWith("HTTP/1.1 429 "));
  const MetricsPage full = scrape();
  EXPECT_EQ(full.value(refusals("queue_full")) - busy.value(refusals("queue_full")), 1);
  EXPECT_EQ(full.value(requests("4xx", "error")), 1);
  double n_tokens = 0;
  for (int i = 0; i < 10; ++i) {  // counts rise while it goes on, and never fall
    const double now = scrape().value(sample("triptych_generation_tokens_total"));
    EXPECT_GE(now, n_tokens);
    n_tokens = now;
  }
  client.close();
  const MetricsPage left = scrape_until(requests("2xx", "cancelled"), 1);
  EXPECT_EQ(left.value(requests("2xx", "cancelled")), 1);
  EXPECT_EQ(left.value(sample("triptych_requests_running")), 0);
  EXPECT_EQ(left.value(sample("triptych_kv_cache_used_pages")), 0);
  EXPECT_EQ(left.value(sample("triptych_request_duration_seconds_count")), 0) << "broken off";
}

TEST_F(ServeMetrics, IsWrittenAsTheScraperWants) {
  const Json answer = *parse_json(body_of(chat(square(R"("max_tokens": 2)"))));
  const std::string plain = ask(http::get("/metrics"));
  EXPECT_THAT(plain, HasSubstr("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_THAT(body_of(plain), Not(HasSubstr("# EOF")));
  EXPECT_THAT(body_of(plain), Not(HasSubstr("chatcmpl-")));
  const std::string open = ask(http::get("/metrics"), kOpenMetrics);
  EXPECT_THAT(
      open,
      HasSubstr(
          "\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
  const MetricsPage page(body_of(open), MetricsFormat::kOpenMetrics);
  EXPECT_THAT(page.faults(), IsEmpty());
  EXPECT_THAT(page.exemplars(), testing::ElementsAre(HasSubstr(
                                    "{request_id=\"" + answer.find("id")->string_value() + "\"}")));
  EXPECT_TRUE(registry_.status().is_ok()) << registry_.status().message();
  // Room for several models.
  EXPECT_LT(registry_.n_lines(), MetricsRegistry::kMostLines / 8);
}

TEST_F(ServeMetrics, ShowsAllThatTheTableLists) {
  const MetricsPage page = scrape();
  for (const MetricFamily& family : metric_table()) {
    if (&family == &family_of(Metric::kBuildInfo)) continue;  // run_serve's
    EXPECT_TRUE(page.types().contains(std::string(family.name))) << family.name;
  }
}

TEST_F(ServeMetrics, NeedsAKeyWhereThereAreKeys) {
  AccessControl access;
  access.add("ann", "secret");
  MetricsRegistry registry;
  Service guarded({*model_}, access, registry);
  server_ = http::Server::start({.port = 0}, {}, callbacks_of(guarded)).value();
  EXPECT_THAT(ask(http::get("/metrics")), StartsWith("HTTP/1.1 401 "));
  const std::string page = ask(http::get("/metrics"), "Authorization: Bearer secret\r\n");
  EXPECT_THAT(page, HasSubstr(refusals("unauthorised") + " 1\n"));
  server_.reset();
}

}  // namespace
}  // namespace triptych::cli
