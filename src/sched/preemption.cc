#include <algorithm>
#include <tuple>
#include <vector>

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

// Room for decode rows that hold no promise.
int64_t unpromised_room(const StepDraft& draft) {
  return std::max<int64_t>(draft.pages_left - draft.promised_pages, 0);
}

// Its next token is not due within the longest step.
bool has_lead(const SequenceState& state, const StepDraft& draft) {
  return next_token_due(state, draft.config) - draft.snapshot.now_ms >
         longest_gap_ms(state, draft.config);
}

// The fewer pages are left under `pause_below` of the pool, the fewer sequences take one: those
// with a lead wait, lowest class and latest arrival first. They lose nothing but their lead, while
// the others come to their end and give back what they hold.
void pause_early(StepDraft& draft) {
  const double low = draft.config.pause_below * static_cast<double>(draft.snapshot.total_pages);
  const double room = static_cast<double>(unpromised_room(draft));
  const auto need = static_cast<double>(unpromised_need(draft));
  if (low == 0 || room >= std::max(low, need)) return;
  double too_many = need - std::min(need * room / std::max(low, 1.0), room);
  std::vector<ActiveSequence*> early;
  for (ActiveSequence& sequence : draft.active) {
    const SequenceState& state = *sequence.state;
    if (sequence.decodes && !is_promised(state, draft.config) && has_lead(state, draft) &&
        kv_pages_to_add(state, 1, draft.config.page_tokens) > 0) {
      early.push_back(&sequence);
    }
  }
  std::sort(early.begin(), early.end(), [](const ActiveSequence* a, const ActiveSequence* b) {
    return gives_way_before(*a->state, *b->state);
  });
  for (ActiveSequence* sequence : early) {
    if (too_many <= 0) return;
    too_many -= static_cast<double>(kv_pages_to_add(*sequence->state, 1, draft.config.page_tokens));
    sequence->decodes = false;
    sequence->paused = true;
    draft.plan.paused.push_back(sequence->state->id);
    draft.short_of_pages = true;
  }
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

// All or nothing: the decode rows that go have their pages together, or somebody gives way.
void reserve_decode_rows(StepDraft& draft) {
  pause_early(draft);
  while (unpromised_need(draft) > unpromised_room(draft)) {
    const size_t victim = pick_victim(draft.active, draft.config, nullptr);
    if (victim == draft.active.size()) break;
    draft.preempt(victim);
  }
  for (ActiveSequence& sequence : draft.active) {
    if (!sequence.decodes) continue;
    const int64_t pages = kv_pages_to_add(*sequence.state, 1, draft.config.page_tokens);
    // With nobody left to give way it waits a step.
    const int64_t room =
        is_promised(*sequence.state, draft.config) ? draft.pages_left : unpromised_room(draft);
    if (pages > room) {
      sequence.decodes = false;
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
