#include "sched/feasibility.h"

#include <algorithm>
#include <cmath>

#include "sched/deadline.h"
#include "sched/kv_pages.h"
#include "sched/step_draft.h"

namespace triptych {
namespace {

constexpr double kLeastPrefillShare = 0.1;  // prefill never stops altogether

// Share of the time that decode rows leave, as time_to_next_token hands it out.
double prefill_share(const Snapshot& snapshot, const SchedulerConfig& config,
                     const Predictors& predictors) {
  StepShape shape;
  double tightest = kNever;
  for (const SequenceState& sequence : snapshot.running) {
    if (!sequence.decoding()) continue;
    shape.add_decode(static_cast<double>(sequence.n_tokens), 0);
    tightest = std::min(tightest, config.policy(sequence.service_class).tpot_ms);
  }
  if (shape.rows == 0) return 1;
  const double left = 1 - predictors.cost.predict_ms(shape) / (tightest * config.step_fill);
  return std::clamp(left, kLeastPrefillShare, 1.0);
}

bool can_never_run(StepDraft& draft, const SequenceState& sequence) {
  const Snapshot& snapshot = draft.snapshot;
  const int64_t pages =
      kv_pages_for_rows(sequence, sequence.max_tokens(), draft.config.page_tokens);
  if (pages > snapshot.total_pages) {
    draft.plan.ended.push_back({sequence.id, EndReason::kTooManyPages, static_cast<double>(pages),
                                static_cast<double>(snapshot.total_pages)});
    return true;
  }
  const uint64_t bytes = media_bytes_to_reserve(sequence, draft.predictors.media_bytes);
  if (bytes > snapshot.media_bytes_cap) {
    draft.plan.ended.push_back({sequence.id, EndReason::kTooMuchMedia, static_cast<double>(bytes),
                                static_cast<double>(snapshot.media_bytes_cap)});
    return true;
  }
  return false;
}

bool expired(StepDraft& draft, const SequenceState& sequence, double first_token_ms) {
  if (first_token_ms <= sequence.expires_ms) return false;
  draft.plan.ended.push_back(
      {sequence.id, EndReason::kExpired, first_token_ms, sequence.expires_ms});
  return true;
}

// A waiting request that cannot make its time, or comes so late that its class gives it up.
bool too_late(StepDraft& draft, const SequenceState& sequence) {
  const ClassPolicy& policy = draft.config.policy(sequence.service_class);
  const bool sheds = std::isfinite(policy.shed_factor) && sequence.n_drawn() == 0;
  if (!sheds && !std::isfinite(sequence.expires_ms)) return false;
  const double first_token_ms =
      draft.snapshot.now_ms + work_to_first_token_ms(sequence, draft.predictors);
  if (expired(draft, sequence, first_token_ms)) return true;
  const double limit = policy.ttft_ms * policy.shed_factor;
  if (!sheds || first_token_ms - sequence.arrival_ms <= limit) return false;
  draft.plan.ended.push_back(
      {sequence.id, EndReason::kHopeless, first_token_ms - sequence.arrival_ms, limit});
  return true;
}

}  // namespace

double work_to_first_token_ms(const SequenceState& sequence, const Predictors& predictors) {
  StepShape shape;
  for (const MediaState& media : sequence.media) {
    if (media.encoded || media.end() <= sequence.n_cached) continue;
    shape.add_encode(static_cast<double>(media.blocks_left), media.block_gflop);
  }
  shape.add_prefill(static_cast<double>(sequence.pending_rows()),
                    static_cast<double>(sequence.n_cached));
  return predictors.cost.predict_ms(shape);
}

double estimate_ttft_ms(const Snapshot& snapshot, const SequenceState& candidate,
                        const SchedulerConfig& config, const Predictors& predictors) {
  double work = work_to_first_token_ms(candidate, predictors);
  const Urgency own = urgency(candidate, snapshot.now_ms, config);
  for (const SequenceState& sequence : snapshot.running) {
    if (!sequence.decoding()) work += work_to_first_token_ms(sequence, predictors);
  }
  for (const SequenceState& sequence : snapshot.waiting) {
    if (sequence.id != candidate.id && urgency(sequence, snapshot.now_ms, config) < own) {
      work += work_to_first_token_ms(sequence, predictors);
    }
  }
  return work / prefill_share(snapshot, config, predictors);
}

void end_hopeless(StepDraft& draft) {
  for (size_t i = draft.active.size(); i-- > 0;) {
    if (expired(draft, *draft.active[i].state, draft.snapshot.now_ms)) draft.drop(i);
  }
  draft.candidates.reserve(draft.snapshot.waiting.size());
  for (const SequenceState& sequence : draft.snapshot.waiting) {
    if (!can_never_run(draft, sequence) && !too_late(draft, sequence)) {
      draft.candidates.push_back(&sequence);
    }
  }
  std::sort(draft.plan.ended.begin(), draft.plan.ended.end(),
            [](const EndedSequence& a, const EndedSequence& b) { return a.id < b.id; });
}

}  // namespace triptych
