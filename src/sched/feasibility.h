#pragma once

#include "sched/config.h"
#include "sched/predictors.h"
#include "sched/snapshot.h"

namespace triptych {

/// Work before a sequence's first token if it had the machine to itself: encoding and prefill. ms.
double work_to_first_token_ms(const SequenceState& sequence, const Predictors& predictors);

/// Predicted time from now to the first token of a request that is about to wait: the work of all
/// before it in the order of service and its own, in the share of time that decoding leaves.
/// Waiting for memory is not in it. The front asks this before any media work and refuses when the
/// class's target cannot be met. ms.
double estimate_ttft_ms(const Snapshot& snapshot, const SequenceState& candidate,
                        const SchedulerConfig& config, const Predictors& predictors);

}  // namespace triptych
