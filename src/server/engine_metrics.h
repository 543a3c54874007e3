#pragma once

#include <array>
#include <string_view>

#include "engine/multimodal_engine.h"
#include "observe/metrics.h"

namespace triptych {

/// What an engine tells of itself, as metrics of its model. The registry outlives it.
class EngineMetrics {
 public:
  EngineMetrics(MetricsRegistry& registry, std::string_view model);

  /// Looks of the same engine come in the order in which they were taken.
  void update(const EngineStatus& status);

 private:
  void update_memory(const EngineStatus& status);

  struct PerModality {
    Counter* tokens = nullptr;
    Counter* encoder_queries = nullptr;
    Counter* encoder_hits = nullptr;
  };

  Gauge* running_;
  Gauge* waiting_;
  Gauge* preparing_;
  Gauge* host_bytes_;
  Gauge* kv_usage_;
  Gauge* kv_pages_;
  Gauge* kv_used_;
  Gauge* kv_idle_;
  Gauge* step_error_;
  Gauge* encode_to_decode_p50_;
  Gauge* encode_to_decode_p99_;
  Gauge* encode_to_decode_jitter_;
  Gauge* alias_running_;
  Gauge* alias_waiting_;
  Gauge* alias_kv_usage_;
  Counter* prefix_queries_;
  Counter* prefix_hits_;
  Counter* preemptions_;
  std::array<PerModality, 4> modalities_;  ///< by Modality; none for text
};

}  // namespace triptych
