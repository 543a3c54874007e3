#pragma once

#include <span>

#include "sched/config.h"
#include "sched/snapshot.h"

namespace triptych {

/// When the first token of a sequence is due: arrival and the TTFT target of its class. ms.
double first_token_due(const SequenceState& sequence, const SchedulerConfig& config);

/// Place in the order of service; smaller comes first. Ties end at the id, so the order is total.
struct Urgency {
  int64_t rank = 0;   ///< class, lifted by one for each `ageing_ms` of waiting; 0 is the highest
  double due_ms = 0;  ///< first token due, or arrival with QueueOrder::kArrival
  uint64_t id = 0;
  auto operator<=>(const Urgency&) const = default;
};
Urgency urgency(const SequenceState& sequence, double now_ms, const SchedulerConfig& config);

/// When the next token of a decoding sequence is due: token k is due k TPOT targets after the
/// first. ms.
double next_token_due(const SequenceState& sequence, const SchedulerConfig& config);

/// The longest step that a decoding sequence is made to sit through: `max_gap_factor` TPOT targets.
/// ms.
double longest_gap_ms(const SequenceState& sequence, const SchedulerConfig& config);

/// Time until the earliest next-token deadline of decoding sequences. Between half a target and
/// `max_gap_factor` targets each, so that a sequence that is late does not stop all prefill and one
/// that is early is not made to stutter. kNever when `decoding` is empty. ms.
double time_to_next_token(std::span<const SequenceState* const> decoding, double now_ms,
                          const SchedulerConfig& config);

}  // namespace triptych
