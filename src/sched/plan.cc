#include "sched/plan.h"

#include <fmt/format.h>

#include "sched/deadline.h"
#include "sched/step_draft.h"

namespace triptych {
namespace {

// Decode rows that were given pages; and how long the step may take because of them and of those
// that were made to wait.
void add_decode_rows(StepDraft& draft) {
  std::vector<const SequenceState*> decoding;
  for (const ActiveSequence& active : draft.active) {
    const SequenceState& state = *active.state;
    if (active.decodes || active.paused) decoding.push_back(&state);
    if (!active.decodes) continue;
    int64_t media_rows = 0;
    for (const MediaState& media : state.media) media_rows += media.length;
    draft.plan.rows.push_back({state.id, 1, active.decode_pages});
    draft.plan.rows_shape.add_decode(static_cast<double>(state.n_tokens - media_rows),
                                     static_cast<double>(media_rows));
  }
  draft.plan.n_decode_rows = draft.plan.rows.size();
  draft.plan.budget_ms = time_to_next_token(decoding, draft.snapshot.now_ms, draft.config);
}

}  // namespace

std::string describe(const EndedSequence& ended) {
  switch (ended.reason) {
    case EndReason::kExpired:
      return fmt::format("its time ran out {:.0f} ms before the next token could come",
                         ended.needed - ended.limit);
    case EndReason::kHopeless:
      return fmt::format("the first token would take {:.0f} ms, the class allows {:.0f} ms",
                         ended.needed, ended.limit);
    case EndReason::kTooManyPages:
      return fmt::format("prompt and answer need {:.0f} KV pages, the pool has {:.0f}",
                         ended.needed, ended.limit);
    case EndReason::kTooMuchMedia:
      return fmt::format("its media need {:.0f} bytes, {:.0f} are set aside for media",
                         ended.needed, ended.limit);
  }
  return "";
}

StepPlan plan_step(const Snapshot& snapshot, const SchedulerConfig& config,
                   const Predictors& predictors) {
  StepDraft draft(snapshot, config, predictors);
  end_hopeless(draft);
  reserve_decode_rows(draft);
  admit_waiting(draft);
  add_decode_rows(draft);
  pace_media(draft);
  slice_encoding(draft);
  cut_prefill(draft);
  break_deadlock(draft);

  StepPlan& plan = draft.plan;
  plan.fairness.media_credit_ms = draft.media_credit_ms;
  plan.predicted_encode_ms = predictors.cost.predict_ms(plan.encode_shape);
  plan.predicted_ms = plan.predicted_encode_ms + predictors.cost.predict_ms(plan.rows_shape);
  return std::move(draft.plan);
}

}  // namespace triptych
