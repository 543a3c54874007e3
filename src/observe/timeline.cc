#include "observe/timeline.h"

#include <fmt/format.h>

namespace triptych {

std::string_view stage_name(Stage stage) {
  switch (stage) {
    case Stage::kFetch:
      return "fetch";
    case Stage::kQueue:
      return "queue";
    case Stage::kProcess:
      return "process";
    case Stage::kMediaDecode:
      return "media_decode";
    case Stage::kWait:
      return "wait";
    case Stage::kEncode:
      return "encode";
    case Stage::kPrefill:
      return "prefill";
    case Stage::kDecode:
      return "decode";
  }
  return "";
}

std::string_view cache_tier_name(CacheTier tier) {
  switch (tier) {
    case CacheTier::kNone:
      return "none";
    case CacheTier::kEncoder:
      return "encoder";
    case CacheTier::kPrefix:
      return "prefix";
  }
  return "";
}

CacheTier Timeline::cache_tier() const {
  if (media_tokens > 0 ? media_in_prefix > 0 : cached_tokens > 0) return CacheTier::kPrefix;
  return media_in_encoder > 0 ? CacheTier::kEncoder : CacheTier::kNone;
}

void StageClock::enter(Stage stage, double now_ms) {
  if (spans_.back().stage == stage) return;
  spans_.back().end_ms = now_ms;
  spans_.push_back({stage, now_ms, now_ms});
}

double StageClock::ms(Stage stage) const {
  double out = 0;
  for (const Span& span : spans_) {
    if (span.stage == stage) out += span.end_ms - span.start_ms;
  }
  return out;
}

Json stage_times_json(const StageClock& clock) {
  Json out = Json::object();
  out.set("total_ms", Json::number(clock.total_ms()));
  for (size_t i = 0; i < kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    out.set(fmt::format("{}_ms", stage_name(stage)), Json::number(clock.ms(stage)));
  }
  return out;
}

}  // namespace triptych
