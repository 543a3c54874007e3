#include <algorithm>
#include <utility>

#include "sched/feasibility.h"
#include "sched/step_draft.h"

namespace triptych {
namespace {

constexpr double kHaste = 2;  // times the share that would just do

// Due time and work of a sequence whose media are not all in its cache.
using DueWork = std::pair<double, double>;

void add_due(const StepDraft& draft, const SequenceState& state, std::vector<DueWork>& due) {
  if (!has_media_ahead(state)) return;
  due.emplace_back(first_token_due(state, draft.config),
                   work_to_first_token_ms(state, draft.predictors));
}

// Share of the time that media need from now on: in the order of deadlines, the work up to each
// over the time left to it. 1 and more when some first token will be late.
double needed_share(const StepDraft& draft) {
  std::vector<DueWork> due;
  for (const ActiveSequence& active : draft.active) add_due(draft, *active.state, due);
  for (const SequenceState* waiting : draft.candidates) {
    if (!draft.is_admitted(waiting->id)) add_due(draft, *waiting, due);
  }
  std::sort(due.begin(), due.end());
  double work_ms = 0;
  double share = 0;
  for (const auto& [deadline, work] : due) {
    work_ms += work;
    const double left_ms = deadline - draft.snapshot.now_ms;
    share = std::max(share, left_ms > work_ms ? work_ms / left_ms : 1);
  }
  return share;
}

}  // namespace

const MediaState* next_media(const SequenceState& sequence) {
  for (const MediaState& media : sequence.media) {
    if (media.end() > sequence.n_cached) return &media;
  }
  return nullptr;
}

// Time for media is earned by decoding and spent on blocks and rows. A slice is earned before it
// runs, and what it took too much before the next one: a short answer ends before anything of a
// picture that is not pressed comes between its tokens. The share grows with the work that is due,
// so that a first token comes late in nobody's eyes and early in most.
void pace_media(StepDraft& draft) {
  const SchedulerConfig& config = draft.config;
  const double share = std::max(config.media_share, kHaste * needed_share(draft));
  draft.media_paced = share < 1;
  draft.media_credit_ms = draft.snapshot.fairness.media_credit_ms;
  if (draft.plan.n_decode_rows == 0) draft.media_credit_ms = std::max(0.0, draft.media_credit_ms);
  if (draft.plan.n_decode_rows == 0 || !draft.media_paced) return;
  const double decode_ms = draft.predictors.cost.predict_ms(draft.plan.rows_shape);
  draft.media_credit_ms =
      std::min(draft.media_credit_ms + decode_ms * share / (1 - share), config.encode_slice_ms);
}

}  // namespace triptych
