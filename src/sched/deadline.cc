#include "sched/deadline.h"

#include <algorithm>

namespace triptych {

double first_token_due(const SequenceState& sequence, const SchedulerConfig& config) {
  return sequence.arrival_ms + config.policy(sequence.service_class).ttft_ms;
}

Urgency urgency(const SequenceState& sequence, double now_ms, const SchedulerConfig& config) {
  if (config.order == QueueOrder::kArrival) return {0, sequence.arrival_ms, sequence.id};
  const double waited = std::max(now_ms - sequence.arrival_ms, 0.0);
  const auto lifted = static_cast<int64_t>(
      std::min(waited / config.ageing_ms, static_cast<double>(kServiceClasses)));
  const auto rank = static_cast<int64_t>(sequence.service_class);
  return {std::max<int64_t>(rank - lifted, 0), first_token_due(sequence, config), sequence.id};
}

double next_token_due(const SequenceState& sequence, const SchedulerConfig& config) {
  return sequence.first_token_ms +
         static_cast<double>(sequence.n_drawn()) * config.policy(sequence.service_class).tpot_ms;
}

double longest_gap_ms(const SequenceState& sequence, const SchedulerConfig& config) {
  return config.policy(sequence.service_class).tpot_ms * config.max_gap_factor;
}

double time_to_next_token(std::span<const SequenceState* const> decoding, double now_ms,
                          const SchedulerConfig& config) {
  double least = kNever;
  for (const SequenceState* sequence : decoding) {
    const double tpot = config.policy(sequence->service_class).tpot_ms;
    const double due = next_token_due(*sequence, config);
    least = std::min(least, std::clamp(due - now_ms, tpot / 2, longest_gap_ms(*sequence, config)));
  }
  return least;
}

}  // namespace triptych
