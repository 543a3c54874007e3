#pragma once

#include <cstdint>
#include <string_view>

#include "sched/config.h"
#include "sched/forecast.h"
#include "sched/predictors.h"
#include "sched/snapshot.h"

namespace triptych {

/// Which dimension keeps a request out.
enum class Shortage : uint8_t { kNone, kSlots, kPages, kMediaBytes, kTime };
/// "slots", "KV pages", "media memory", "step time"; empty for kNone.
std::string_view shortage_name(Shortage shortage);

/// The room that admission may fill.
struct Room {
  int64_t total_pages = 0;
  int64_t pages_left = 0;   ///< free or evictable, pages of this step's decode rows included
  int64_t pages_taken = 0;  ///< of these, already for decode rows that hold no promise
  uint64_t media_bytes_left = 0;
};

/// What running sequences hold and will need, in bytes (KV pages, media memory) and in time (decode
/// step against the tightest TPOT). A request comes in when both fit with it.
class Reservation {
 public:
  Reservation(const Room& room, const SchedulerConfig& config, const Predictors& predictors);

  void add_running(const SequenceState& sequence);
  /// kNone when `candidate` fits. Alone it always fits in time.
  Shortage check(const SequenceState& candidate) const;
  /// `candidate` came in.
  void admit(const SequenceState& candidate);

 private:
  void tighten(const SequenceState& sequence);

  Room room_;
  const SchedulerConfig* config_;
  const Predictors* predictors_;
  Forecast forecast_;
  int64_t n_running_ = 0;
  int64_t promised_pages_ = 0;
  double tightest_tpot_ms_ = kNever;
};

/// Its whole length is kept free: always with kWholeLength, and for one that was preempted as often
/// as it may be, so that it never is again.
bool is_promised(const SequenceState& sequence, const SchedulerConfig& config);
/// Pages a promised running sequence has yet to take.
int64_t promised_pages_left(const SequenceState& sequence, const SchedulerConfig& config);
/// Pages a waiting sequence takes from the room for its first `n_rows` rows.
int64_t pages_to_come_in(const SequenceState& sequence, int64_t n_rows,
                         const SchedulerConfig& config);
/// Media memory to reserve for what a sequence has not yet merged into its cache.
uint64_t media_bytes_to_reserve(const SequenceState& sequence, const ByteFactor& factor);

}  // namespace triptych
