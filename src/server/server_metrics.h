#pragma once

#include <array>
#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/multimodal_engine.h"
#include "observe/metrics.h"
#include "server/answer_metrics.h"
#include "server/engine_metrics.h"
#include "server/http/http.h"

namespace triptych {

/// All that a server counts, and its page: what happens is counted as it happens, and what the
/// engines keep is asked of them when the page is. Thread-safe.
class ServerMetrics final : public http::ConnectionObserver {
 public:
  struct Model {
    std::string name;
    std::shared_ptr<const MultiModalEngine> engine;
  };
  struct Routes {
    std::vector<std::string_view> all;       ///< paths
    std::vector<std::string_view> answered;  ///< of these by models
  };

  /// `registry` outlives it, and the paths are there for ever.
  ServerMetrics(MetricsRegistry& registry, const std::vector<Model>& models, const Routes& routes);

  void connection_opened() override { ++n_connections_; }
  void connection_closed() override { --n_connections_; }
  void body_received(uint64_t n_bytes) override { body_bytes_->add(n_bytes); }

  /// An answer to a request at `path`, which may be none of ours.
  void answered(std::string_view path, int http_status);
  /// An answer to a request that was refused by its head, or could not be read.
  void refused(int http_status);
  /// The same with what was wrong with a request that names no model.
  void refused(const Status& status) { refusals_.count(status.code()); }
  /// For the requests of a model of ours at a path that models answer.
  openai::AnswerObserver& answers(const std::string& model, std::string_view path);

  std::string page(MetricsFormat format);

 private:
  struct Watched {
    std::shared_ptr<const MultiModalEngine> engine;
    EngineMetrics metrics;
  };
  using ByClass = std::array<Counter*, kStatusClasses.size()>;

  MetricsRegistry& registry_;
  std::map<std::string_view, ByClass> answered_;  ///< by path; "other" too
  RefusalMetrics refusals_;
  Counter* body_bytes_;
  Gauge* connections_;
  Gauge* resident_;
  std::map<std::pair<std::string, std::string_view>, AnswerMetrics> answers_;
  std::atomic<int64_t> n_connections_ = 0;
  std::atomic<int64_t> n_bodies_refused_ = 0;
  std::mutex mutex_;  ///< of page(): looks at an engine must not overtake each other
  std::vector<Watched> engines_;
};

/// How a page of metrics is to be written, by a request's Accept header (null: it has none).
MetricsFormat metrics_format_for(const std::string* accept);
std::string_view metrics_content_type(MetricsFormat format);

}  // namespace triptych
