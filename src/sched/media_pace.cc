#include <algorithm>
#include <utility>

#include "sched/feasibility.h"
#include "sched/step_draft.h"

namespace triptych {
namespace {

constexpr double kHaste = 2;  // times the work that must fit before the deadline

// Due time and work of a sequence whose media are not all in its cache.
using DueWork = std::pair<double, double>;

void add_due(const StepDraft& draft, const SequenceState& state, std::vector<DueWork>& due) {
  if (!has_media_ahead(state)) return;
  due.emplace_back(first_token_due(state, draft.config),
                   work_to_first_token_ms(state, draft.predictors));
}

// In the order of deadlines, some first token would be late if media only got what is left over.
bool media_pressed(const StepDraft& draft) {
  std::vector<DueWork> due;
  for (const ActiveSequence& active : draft.active) add_due(draft, *active.state, due);
  for (const SequenceState* waiting : draft.candidates) {
    if (!draft.is_admitted(waiting->id)) add_due(draft, *waiting, due);
  }
  std::sort(due.begin(), due.end());
  double done = draft.snapshot.now_ms;
  for (const auto& [deadline, work] : due) {
    done += kHaste * work;
    if (done >= deadline) return true;
  }
  return false;
}

}  // namespace

bool has_media_ahead(const SequenceState& sequence) {
  return !sequence.media.empty() && sequence.media.back().end() > sequence.n_cached;
}

// Time for media is earned by decoding and spent on blocks and spans, a slice at most ahead; what a
// block took too much is earned before the next one.
void pace_media(StepDraft& draft) {
  const SchedulerConfig& config = draft.config;
  draft.media_credit_ms = draft.snapshot.fairness.media_credit_ms;
  if (draft.plan.n_decode_rows == 0 || config.media_share >= 1) return;
  const double decode_ms = draft.predictors.cost.predict_ms(draft.plan.rows_shape);
  draft.media_credit_ms =
      std::min(draft.media_credit_ms + decode_ms * config.media_share / (1 - config.media_share),
               config.encode_slice_ms);
  draft.media_paced = !media_pressed(draft);
}

}  // namespace triptych
