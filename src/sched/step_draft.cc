#include "sched/step_draft.h"

#include <algorithm>

namespace triptych {

StepDraft::StepDraft(const Snapshot& s, const SchedulerConfig& c, const Predictors& p)
    : snapshot(s), config(c), predictors(p), pages_left(s.available_pages()) {
  active.reserve(s.running.size() + 8);
  for (const SequenceState& sequence : s.running) {
    active.push_back({&sequence, urgency(sequence, s.now_ms, c), sequence.decoding()});
    promised_pages += promised_pages_left(sequence, c);
  }
  std::sort(active.begin(), active.end(),
            [](const ActiveSequence& a, const ActiveSequence& b) { return a.urgency < b.urgency; });
  plan.fairness = s.fairness;
}

int64_t StepDraft::pages_for(const SequenceState& sequence) const {
  if (is_promised(sequence, config)) return pages_left;
  return plan.paused.empty() ? pages_left - promised_pages : 0;
}

void StepDraft::take_pages(const SequenceState& sequence, int64_t n_pages) {
  pages_left -= n_pages;
  if (is_promised(sequence, config)) promised_pages -= n_pages;
}

void StepDraft::drop(size_t index) {
  const ActiveSequence& gone = active[index];
  pages_left += gone.state->n_pages_own + gone.decode_pages;
  if (is_promised(*gone.state, config)) {
    promised_pages -= promised_pages_left(*gone.state, config) - gone.decode_pages;
  }
  std::erase(plan.paused, gone.state->id);
  active.erase(active.begin() + static_cast<std::ptrdiff_t>(index));
}

void StepDraft::preempt(size_t index) {
  plan.preempt.push_back(active[index].state->id);
  drop(index);
}

Room StepDraft::room() const {
  int64_t taken = 0;
  int64_t unpromised = 0;
  for (const ActiveSequence& sequence : active) {
    taken += sequence.decode_pages;
    if (!is_promised(*sequence.state, config)) unpromised += sequence.decode_pages;
  }
  const uint64_t in_use = std::min(snapshot.media_bytes_in_use, snapshot.media_bytes_cap);
  return {snapshot.total_pages, pages_left + taken, unpromised, snapshot.media_bytes_cap - in_use};
}

}  // namespace triptych
