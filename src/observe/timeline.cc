#include "observe/timeline.h"

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

}  // namespace triptych
