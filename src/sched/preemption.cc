#include <algorithm>
#include <tuple>

#include "sched/kv_pages.h"
#include "sched/step_draft.h"

namespace triptych {
namespace {

bool gives_way_before(const SequenceState& a, const SequenceState& b) {
  return std::tuple(a.service_class, a.arrival_ms, a.id) >
         std::tuple(b.service_class, b.arrival_ms, b.id);
}

// Pages for the next row of all decoding sequences that hold no promise.
int64_t unpromised_need(const StepDraft& draft) {
  int64_t need = 0;
  for (const ActiveSequence& sequence : draft.active) {
    if (sequence.decodes && !is_promised(*sequence.state, draft.config)) {
      need += kv_pages_to_add(*sequence.state, 1, draft.config.page_tokens);
    }
  }
  return need;
}

}  // namespace

size_t pick_victim(const std::vector<ActiveSequence>& active, const SchedulerConfig& config,
                   const ServiceClass* above) {
  size_t victim = active.size();
  for (size_t i = 0; i < active.size(); ++i) {
    const SequenceState& state = *active[i].state;
    if (active[i].admitted || is_promised(state, config)) continue;
    if (above != nullptr && state.service_class <= *above) continue;
    if (state.n_pages_own == 0 && kv_pages_to_add(state, 1, config.page_tokens) == 0) continue;
    if (victim == active.size() || gives_way_before(state, *active[victim].state)) victim = i;
  }
  return victim;
}

// All or nothing: either every decoding sequence has the page for its row, or somebody gives way.
void reserve_decode_rows(StepDraft& draft) {
  while (unpromised_need(draft) > std::max<int64_t>(draft.pages_left - draft.promised_pages, 0)) {
    const size_t victim = pick_victim(draft.active, draft.config, nullptr);
    if (victim == draft.active.size()) break;
    draft.preempt(victim);
  }
  for (ActiveSequence& sequence : draft.active) {
    if (!sequence.decodes) continue;
    const int64_t pages = kv_pages_to_add(*sequence.state, 1, draft.config.page_tokens);
    if (pages > draft.pages_for(*sequence.state)) {
      sequence.decodes = false;  // nobody left to give way: it waits a step
      draft.short_of_pages = true;
      continue;
    }
    draft.take_pages(*sequence.state, pages);
    sequence.decode_pages = pages;
  }
}

void break_deadlock(StepDraft& draft) {
  if (!draft.short_of_pages || !draft.plan.does_nothing()) return;
  const size_t victim = pick_victim(draft.active, draft.config, nullptr);
  if (victim < draft.active.size()) draft.preempt(victim);
}

}  // namespace triptych
