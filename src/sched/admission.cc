#include <algorithm>
#include <optional>

#include "sched/fairness.h"
#include "sched/feasibility.h"
#include "sched/step_draft.h"

namespace triptych {
namespace {

constexpr int kMostRefusals = 8;  // candidates that did not fit before a plan looks no further

struct Candidate {
  Urgency urgency;
  const SequenceState* state = nullptr;
  bool refused = false;
};

// Tokens a tenant pays for a request: rows to compute and the answer to expect, once.
int64_t tokens_to_charge(const SequenceState& sequence, const Predictors& predictors) {
  if (sequence.n_preempted > 0) return 0;
  return sequence.pending_rows() +
         static_cast<int64_t>(predictors.lengths.mean(sequence.service_class, sequence.max_new));
}

std::vector<Candidate> by_urgency(const StepDraft& draft) {
  std::vector<Candidate> queue;
  queue.reserve(draft.candidates.size());
  for (const SequenceState* state : draft.candidates) {
    queue.push_back({urgency(*state, draft.snapshot.now_ms, draft.config), state});
  }
  std::sort(queue.begin(), queue.end(),
            [](const Candidate& a, const Candidate& b) { return a.urgency < b.urgency; });
  return queue;
}

// First candidate of the highest rank whose tenant's turn it is.
Candidate* next_candidate(std::vector<Candidate>& queue, bool text_only, DeficitRoundRobin& tenants,
                          const Predictors& predictors) {
  std::vector<DeficitRoundRobin::Head> heads;
  std::vector<Candidate*> of_heads;
  for (Candidate& candidate : queue) {
    if (candidate.refused || (text_only && has_media_ahead(*candidate.state))) continue;
    if (!of_heads.empty() && candidate.urgency.rank != of_heads[0]->urgency.rank) break;
    const uint32_t tenant = candidate.state->tenant;
    const bool known = std::any_of(heads.begin(), heads.end(),
                                   [&](const auto& head) { return head.tenant == tenant; });
    if (known) continue;
    heads.push_back({tenant, tokens_to_charge(*candidate.state, predictors)});
    of_heads.push_back(&candidate);
  }
  if (heads.empty()) return nullptr;
  const uint32_t chosen = tenants.next(heads);
  for (Candidate* candidate : of_heads) {
    if (candidate->state->tenant == chosen) return candidate;
  }
  return nullptr;
}

Reservation reserve_active(const std::vector<ActiveSequence>& active, const Room& room,
                           const StepDraft& draft) {
  Reservation reservation(room, draft.config, draft.predictors);
  for (const ActiveSequence& sequence : active) {
    if (sequence.admitted) {
      reservation.admit(*sequence.state);
    } else {
      reservation.add_running(*sequence.state);
    }
  }
  return reservation;
}

// Preempts sequences of lower classes until `candidate` fits, or nobody when that does not help.
std::optional<Reservation> make_room(StepDraft& draft, const SequenceState& candidate) {
  std::vector<ActiveSequence> kept = draft.active;
  std::vector<uint64_t> victims;
  Room room = draft.room();
  while (true) {
    const size_t victim = pick_victim(kept, draft.config, &candidate.service_class);
    if (victim == kept.size()) return std::nullopt;
    room.pages_left += kept[victim].state->n_pages_own;
    victims.push_back(kept[victim].state->id);
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(victim));
    Reservation reservation = reserve_active(kept, room, draft);
    if (reservation.check(candidate) != Shortage::kNone) continue;
    draft.plan.n_pushed_out += victims.size();
    for (const uint64_t id : victims) {
      const auto at = std::find_if(draft.active.begin(), draft.active.end(),
                                   [&](const auto& active) { return active.state->id == id; });
      draft.preempt(static_cast<size_t>(at - draft.active.begin()));
    }
    return reservation;
  }
}

// It may push out lower classes: half of its time to the first token has gone by and the rest is
// enough.
bool may_push(const SequenceState& candidate, Shortage shortage, const StepDraft& draft) {
  if (!draft.config.push_out || draft.config.order == QueueOrder::kArrival ||
      shortage == Shortage::kMediaBytes) {
    return false;
  }
  const double now = draft.snapshot.now_ms;
  const double ttft = draft.config.policy(candidate.service_class).ttft_ms;
  return now - candidate.arrival_ms > ttft / 2 &&
         now + work_to_first_token_ms(candidate, draft.predictors) <=
             first_token_due(candidate, draft.config);
}

// Work before the first tokens of those who are in. Who waits for its turn outside takes no memory
// yet, and can still be passed by somebody more urgent. Text does not wait for media.
struct Backlog {
  double text_ms = 0;
  double all_ms = 0;

  void add(const SequenceState& state, const Predictors& predictors) {
    const double work = work_to_first_token_ms(state, predictors);
    all_ms += work;
    if (!has_media_ahead(state)) text_ms += work;
  }
};

Backlog backlog_of(const StepDraft& draft) {
  Backlog backlog;
  for (const ActiveSequence& sequence : draft.active) {
    if (!sequence.decodes) backlog.add(*sequence.state, draft.predictors);
  }
  return backlog;
}

// Half of its time to the first token has gone by: others no longer pass it.
bool holds_the_door(const SequenceState& candidate, const StepDraft& draft) {
  if (draft.config.order == QueueOrder::kArrival) return true;
  return draft.snapshot.now_ms - candidate.arrival_ms >
         draft.config.policy(candidate.service_class).ttft_ms / 2;
}

void take_in(StepDraft& draft, const Candidate& candidate) {
  const SequenceState& state = *candidate.state;
  draft.plan.admit.push_back(state.id);
  draft.pages_left -= state.n_pages_lent_idle;
  draft.promised_pages += promised_pages_left(state, draft.config);
  const ActiveSequence active{.state = &state, .urgency = candidate.urgency, .admitted = true};
  const auto at = std::lower_bound(
      draft.active.begin(), draft.active.end(), active,
      [](const ActiveSequence& a, const ActiveSequence& b) { return a.urgency < b.urgency; });
  draft.active.insert(at, active);
}

std::vector<uint32_t> tenants_of(const std::vector<const SequenceState*>& sequences) {
  std::vector<uint32_t> tenants;
  tenants.reserve(sequences.size());
  for (const SequenceState* sequence : sequences) tenants.push_back(sequence->tenant);
  return tenants;
}

}  // namespace

void admit_waiting(StepDraft& draft) {
  DeficitRoundRobin tenants(draft.plan.fairness, draft.config.drr_quantum);
  tenants.keep(tenants_of(draft.candidates));
  draft.plan.fairness = tenants.state();
  if (draft.candidates.empty()) return;
  // Somebody just gave way for pages: nobody comes in on them.
  if (!draft.plan.preempt.empty() || !draft.plan.paused.empty()) {
    draft.plan.blocked = Shortage::kPages;
    return;
  }
  Backlog backlog = backlog_of(draft);

  std::vector<Candidate> queue = by_urgency(draft);
  Reservation reservation = reserve_active(draft.active, draft.room(), draft);
  for (int refusals = 0; refusals < kMostRefusals;) {
    if (backlog.text_ms > draft.config.backlog_ms) {
      if (draft.plan.blocked == Shortage::kNone) draft.plan.blocked = Shortage::kTime;
      break;
    }
    const bool text_only = backlog.all_ms > draft.config.backlog_ms;
    DeficitRoundRobin turn = tenants;
    Candidate* candidate = nullptr;
    if (draft.config.order == QueueOrder::kArrival) {
      const size_t n_in = draft.plan.admit.size();
      candidate = n_in < queue.size() && !text_only ? &queue[n_in] : nullptr;
    } else {
      candidate = next_candidate(queue, text_only, turn, draft.predictors);
    }
    if (candidate == nullptr) {
      if (text_only && draft.plan.blocked == Shortage::kNone) draft.plan.blocked = Shortage::kTime;
      break;
    }
    const SequenceState& state = *candidate->state;
    const Shortage shortage = reservation.check(state);
    if (shortage != Shortage::kNone) {
      candidate->refused = true;
      ++refusals;
      std::optional<Reservation> roomier;
      if (may_push(state, shortage, draft)) roomier = make_room(draft, state);
      if (!roomier.has_value()) {
        if (draft.plan.blocked == Shortage::kNone) draft.plan.blocked = shortage;
        if (holds_the_door(state, draft)) break;
        continue;
      }
      reservation = *roomier;
    }
    candidate->refused = true;  // out of the queue
    backlog.add(state, draft.predictors);
    reservation.admit(state);
    take_in(draft, *candidate);
    turn.charge(state.tenant, tokens_to_charge(state, draft.predictors));
    tenants = turn;
  }
  draft.plan.fairness = tenants.state();
}

}  // namespace triptych
