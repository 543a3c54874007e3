#include "sched/config.h"

#include <fmt/format.h>

namespace triptych {
namespace {

Status positive(std::string_view name, double value) {
  if (value > 0) return Status::ok();
  return invalid_argument(fmt::format("scheduler: {} must be above 0, it is {}", name, value));
}

Status fraction(std::string_view name, double value, double low) {
  if (value >= low && value <= 1) return Status::ok();
  return invalid_argument(
      fmt::format("scheduler: {} must be in [{}, 1], it is {}", name, low, value));
}

}  // namespace

Status validate(const SchedulerConfig& config) {
  TRIPTYCH_RETURN_IF_ERROR(positive("page_tokens", static_cast<double>(config.page_tokens)));
  TRIPTYCH_RETURN_IF_ERROR(positive("chunk_rows", static_cast<double>(config.chunk_rows)));
  TRIPTYCH_RETURN_IF_ERROR(positive("min_chunk_rows", static_cast<double>(config.min_chunk_rows)));
  TRIPTYCH_RETURN_IF_ERROR(positive("max_running", static_cast<double>(config.max_running)));
  TRIPTYCH_RETURN_IF_ERROR(positive("backlog_ms", config.backlog_ms));
  TRIPTYCH_RETURN_IF_ERROR(positive("ageing_ms", config.ageing_ms));
  TRIPTYCH_RETURN_IF_ERROR(positive("drr_quantum", static_cast<double>(config.drr_quantum)));
  TRIPTYCH_RETURN_IF_ERROR(positive("encode_slice_ms", config.encode_slice_ms));
  TRIPTYCH_RETURN_IF_ERROR(positive("max_gap_factor", config.max_gap_factor));
  TRIPTYCH_RETURN_IF_ERROR(fraction("step_fill", config.step_fill, 0.1));
  TRIPTYCH_RETURN_IF_ERROR(fraction("decode_share", config.decode_share, 0.1));
  TRIPTYCH_RETURN_IF_ERROR(fraction("media_share", config.media_share, 0.01));
  TRIPTYCH_RETURN_IF_ERROR(fraction("pause_below", config.pause_below, 0));
  TRIPTYCH_RETURN_IF_ERROR(fraction("headroom", config.headroom, 0));
  for (const ClassPolicy& policy : config.classes) {
    TRIPTYCH_RETURN_IF_ERROR(positive("ttft_ms", policy.ttft_ms));
    TRIPTYCH_RETURN_IF_ERROR(positive("tpot_ms", policy.tpot_ms));
  }
  // A whole media span of chunk_rows must fit beside one row of everybody else.
  if (config.step_rows < config.chunk_rows + config.max_running) {
    return invalid_argument(fmt::format(
        "scheduler: step_rows ({}) must be at least chunk_rows ({}) and max_running ({}) together",
        config.step_rows, config.chunk_rows, config.max_running));
  }
  return Status::ok();
}

}  // namespace triptych
