#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sched/config.h"
#include "sched/deadline.h"
#include "sched/plan.h"
#include "sched/predictors.h"
#include "sched/reservation.h"
#include "sched/snapshot.h"

namespace triptych {

/// A sequence that runs in the step being planned.
struct ActiveSequence {
  const SequenceState* state = nullptr;
  Urgency urgency;
  bool decodes = false;      ///< gets a decode row
  bool paused = false;       ///< would, but is early and pages are short
  int64_t decode_pages = 0;  ///< taken for its decode row
  bool admitted = false;     ///< by this plan
};

/// A plan in the making: what the stages of plan_step pass on. Inside sched alone.
struct StepDraft {
  StepDraft(const Snapshot& s, const SchedulerConfig& c, const Predictors& p);

  const Snapshot& snapshot;
  const SchedulerConfig& config;
  const Predictors& predictors;
  StepPlan plan;
  std::vector<ActiveSequence> active;            ///< by urgency
  std::vector<const SequenceState*> candidates;  ///< waiting requests that may come in
  int64_t pages_left = 0;                        ///< not yet taken by this plan
  int64_t promised_pages = 0;                    ///< of these, kept for promised sequences
  bool short_of_pages = false;                   ///< an active sequence could not go on
  std::vector<uint64_t> finished_items;          ///< media whose last block this plan runs

  bool media_paced = false;    ///< media go in slices, and beside decoding get a share of the time
  double media_credit_ms = 0;  ///< of which this much is earned; below 0: a slice took more

  /// Media have not earned a slice beside the decode rows of this step.
  bool media_must_wait() const {
    return media_paced && plan.n_decode_rows > 0 && media_credit_ms < config.encode_slice_ms;
  }

  /// A prompt has rows in this step already.
  bool has_prefill() const { return plan.rows.size() > plan.n_decode_rows; }

  bool is_admitted(uint64_t id) const {
    return std::find(plan.admit.begin(), plan.admit.end(), id) != plan.admit.end();
  }
  /// Pages that `sequence` may take now: a promised one out of its promise, others what is not
  /// promised.
  int64_t pages_for(const SequenceState& sequence) const;
  void take_pages(const SequenceState& sequence, int64_t n_pages);
  /// Removes active[index]; its pages come free when the step begins.
  void drop(size_t index);
  void preempt(size_t index);
  Room room() const;
};

// The stages, in order.
void end_hopeless(StepDraft& draft);
void reserve_decode_rows(StepDraft& draft);
void admit_waiting(StepDraft& draft);
void pace_media(StepDraft& draft);
void slice_encoding(StepDraft& draft);
void cut_prefill(StepDraft& draft);
/// When pages are so short that no active sequence can go on, one gives way.
void break_deadlock(StepDraft& draft);

/// The item whose rows come next; nullptr when all are computed.
const MediaState* next_media(const SequenceState& sequence);
inline bool has_media_ahead(const SequenceState& sequence) {
  return next_media(sequence) != nullptr;
}

/// Which sequence gives way next: the lowest class, then the latest arrival, among those whose
/// preemption budget is not spent, who have pages to give and whose class is below `above`
/// (nullptr: any). active.size() when there is none.
size_t pick_victim(const std::vector<ActiveSequence>& active, const SchedulerConfig& config,
                   const ServiceClass* above);

}  // namespace triptych
