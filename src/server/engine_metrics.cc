#include "server/engine_metrics.h"

#include "observe/metric_table.h"

namespace triptych {
namespace {

constexpr double kSeconds = 1e-3;  ///< of a millisecond
constexpr Modality kMedia[] = {Modality::kImage, Modality::kAudio, Modality::kVideo};

uint64_t unsigned_of(int64_t count) { return static_cast<uint64_t>(count); }

}  // namespace

EngineMetrics::EngineMetrics(MetricsRegistry& registry, std::string_view model) {
  const auto gauge = [&](Metric metric) { return registry.gauge(family_of(metric), {model}); };
  const auto counter = [&](Metric metric) { return registry.counter(family_of(metric), {model}); };
  running_ = gauge(Metric::kRunning);
  waiting_ = gauge(Metric::kWaiting);
  preparing_ = gauge(Metric::kPreparing);
  host_bytes_ = gauge(Metric::kHostBytes);
  kv_usage_ = gauge(Metric::kKvUsage);
  kv_pages_ = gauge(Metric::kKvPages);
  kv_used_ = gauge(Metric::kKvUsedPages);
  kv_idle_ = gauge(Metric::kKvIdlePages);
  prefix_queries_ = counter(Metric::kPrefixQueries);
  prefix_hits_ = counter(Metric::kPrefixHits);
  preemptions_ = counter(Metric::kPreemptions);
  for (const Modality modality : kMedia) {
    const auto of_media = [&](Metric metric) {
      return registry.counter(family_of(metric), {model, modality_name(modality)});
    };
    modalities_[static_cast<size_t>(modality)] = {
        .tokens = of_media(Metric::kMediaTokens),
        .encoder_queries = of_media(Metric::kEncoderQueries),
        .encoder_hits = of_media(Metric::kEncoderHits)};
  }
  step_error_ = gauge(Metric::kStepError);
  encode_to_decode_p50_ = gauge(Metric::kEncodeToDecodeP50);
  encode_to_decode_p99_ = gauge(Metric::kEncodeToDecodeP99);
  encode_to_decode_jitter_ = gauge(Metric::kEncodeToDecodeJitter);
  alias_running_ = gauge(Metric::kAliasRunning);
  alias_waiting_ = gauge(Metric::kAliasWaiting);
  alias_kv_usage_ = gauge(Metric::kAliasKvUsage);
}

void EngineMetrics::update(const EngineStatus& status) {
  const auto running = static_cast<double>(status.n_running);
  const auto waiting = static_cast<double>(status.n_waiting);
  const auto preparing = static_cast<double>(status.n_preparing);
  running_->set(running);
  waiting_->set(waiting);
  preparing_->set(preparing);
  alias_running_->set(running);
  alias_waiting_->set(waiting + preparing);
  update_memory(status);
  prefix_queries_->raise_to(unsigned_of(status.counts.prefix_tokens_asked));
  prefix_hits_->raise_to(unsigned_of(status.counts.prefix_tokens_found));
  preemptions_->raise_to(unsigned_of(status.counts.preemptions));
  for (const Modality modality : kMedia) {
    const auto i = static_cast<size_t>(modality);
    const EncoderCounts& items = status.encoder.items[i];
    modalities_[i].tokens->raise_to(unsigned_of(status.counts.media_tokens[i]));
    modalities_[i].encoder_queries->raise_to(unsigned_of(items.total()));
    modalities_[i].encoder_hits->raise_to(unsigned_of(items.hits + items.joined));
  }
  step_error_->set(status.step_error_p95);
  encode_to_decode_p50_->set(status.encode_to_decode_ms.p50 * kSeconds);
  encode_to_decode_p99_->set(status.encode_to_decode_ms.p99 * kSeconds);
  encode_to_decode_jitter_->set(status.encode_to_decode_ms.jitter() * kSeconds);
}

void EngineMetrics::update_memory(const EngineStatus& status) {
  const auto total = static_cast<double>(status.total_pages);
  const auto idle = static_cast<double>(status.evictable_pages);
  const double used = total - idle - static_cast<double>(status.free_pages);
  const double usage = total > 0 ? used / total : 0;
  host_bytes_->set(static_cast<double>(status.host_bytes));
  kv_pages_->set(total);
  kv_used_->set(used);
  kv_idle_->set(idle);
  kv_usage_->set(usage);
  alias_kv_usage_->set(usage);
}

}  // namespace triptych
