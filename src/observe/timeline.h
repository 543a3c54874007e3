#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace triptych {

/// What a request is at, in the order in which most come by.
enum class Stage : uint8_t {
  kFetch,        ///< the front reads or loads its media, before submit
  kQueue,        ///< for a preparation thread
  kProcess,      ///< template, tokens, grammar, identities
  kMediaDecode,  ///< media decoded and brought into shape, or waiting for another who does the same
  kWait,         ///< prepared, not running; also while it is preempted
  kEncode,       ///< running, without the features of all its media
  kPrefill,      ///< prompt (behind a preemption: all there is) through the decoder
  kDecode,       ///< from the first token on
};
inline constexpr size_t kStages = 8;
/// "fetch", "queue", "process", "media_decode", "wait", "encode", "prefill", "decode".
std::string_view stage_name(Stage stage);

/// The clock of one request: it is in one stage at any time, so the stages' times sum to all of it.
/// Milliseconds of whichever clock the caller reads, which must not go back.
class StageClock {
 public:
  struct Span {
    Stage stage = Stage::kQueue;
    double start_ms = 0;
    double end_ms = 0;
  };

  StageClock() = default;
  StageClock(Stage first, double now_ms) : spans_{{first, now_ms, now_ms}} {}

  /// Goes on with `stage`; nothing changes when it is there already.
  void enter(Stage stage, double now_ms);
  /// Ends the last stage.
  void end(double now_ms) { spans_.back().end_ms = now_ms; }

  double start_ms() const { return spans_.front().start_ms; }
  double total_ms() const { return spans_.back().end_ms - spans_.front().start_ms; }
  double ms(Stage stage) const;
  /// Each begins where the one before ends. A few per media item and preemption.
  const std::vector<Span>& spans() const { return spans_; }

 private:
  std::vector<Span> spans_ = std::vector<Span>(1);
};

/// {"total_ms", "fetch_ms", "queue_ms", ...}: a member for each stage, in their order.
Json stage_times_json(const StageClock& clock);

/// The deepest cache that spared work on a request's media, or on its text when it has none.
enum class CacheTier : uint8_t { kNone, kEncoder, kPrefix };
/// "none", "encoder", "prefix".
std::string_view cache_tier_name(CacheTier tier);

/// Where the time of an answer went, and what its media were.
struct Timeline {
  StageClock clock;
  double arrival_ms = 0;          ///< submit; deadlines count from here
  int64_t media_tokens = 0;       ///< rows of its media before pruning
  int64_t media_tokens_kept = 0;  ///< and behind it
  uint64_t media_bytes = 0;       ///< of their pixels
  int64_t cached_tokens = 0;      ///< of the prompt, lent by the prefix cache
  int64_t media_in_prefix = 0;    ///< items among these
  int64_t media_in_encoder = 0;   ///< items whose features the encoder cache had

  CacheTier cache_tier() const;
};

}  // namespace triptych
