#include <algorithm>

#include "sched/chunking.h"
#include "sched/kv_pages.h"
#include "sched/step_draft.h"

namespace triptych {
namespace {

// What is left of the step for prefill.
struct Left {
  int64_t rows = 0;
  double time_ms = 0;    // of the forward pass, decode rows included
  bool longest = false;  // no later step would have more time
};

int64_t page_limited_rows(StepDraft& draft, const SequenceState& state, int64_t rows_left) {
  const auto encoded = [&](const MediaState& media) {
    return media.encoded || std::find(draft.finished_items.begin(), draft.finished_items.end(),
                                      media.item) != draft.finished_items.end();
  };
  const int64_t most = std::min({ready_rows(state, encoded), draft.config.chunk_rows, rows_left});
  if (most <= 0) return 0;
  const int64_t rows =
      rows_within_pages(state, most, draft.pages_for(state), draft.config.page_tokens);
  if (rows == 0) draft.short_of_pages = true;
  return rows;
}

// A chunk that goes although it takes the step over its time: a little text, so that prefill never
// stops; a media span that goes whole when it is late or when waiting would not give it more time.
int64_t forced_chunk(const StepDraft& draft, const SequenceState& state, int64_t most,
                     const Left& left) {
  const SchedulerConfig& config = draft.config;
  const int64_t smallest = smallest_chunk(state, config.chunk_rows);
  if (smallest == 1) {
    return legal_chunk(state, std::min(most, config.min_chunk_rows), config.chunk_rows);
  }
  const bool late = draft.snapshot.now_ms >= first_token_due(state, config) - left.time_ms;
  return (late || left.longest) && smallest <= most ? smallest : 0;
}

// Whether the decoder has not begun with what is encoded.
bool begins(const SequenceState& state) {
  const MediaState* next = next_media(state);
  return next->encoded && state.n_cached <= next->position;
}

// Nobody but this sequence has anything to do: whoever comes next waits for one step.
bool is_alone(const StepDraft& draft) {
  return draft.snapshot.running.size() + draft.plan.admit.size() == 1 &&
         draft.snapshot.waiting.size() == draft.plan.admit.size();
}

// Time of a slice of prefill. Without decode rows it pays for reading the weights, and must be
// worth that; alone it may make them a small part, while that keeps no newcomer from its target.
double paced_slice_ms(const StepDraft& draft, const SequenceState& state) {
  constexpr double kReads = 2;
  constexpr double kReadsAlone = 6;
  const CostModel& cost = draft.predictors.cost;
  StepShape row = draft.plan.rows_shape;
  row.add_prefill(1, static_cast<double>(state.n_cached));
  const double row_ms = cost.predict_ms(row);
  const double slice = std::max(
      cost.predict_ms(draft.plan.rows_shape) + draft.config.encode_slice_ms, kReads * row_ms);
  if (!is_alone(draft)) return slice;
  const double newcomer = draft.config.policy(ServiceClass::kInteractive).ttft_ms / 4;
  return std::max(slice, std::min(kReadsAlone * row_ms, newcomer));
}

// Rows of a sequence with media that are paced: a slice at most, or one span that goes whole. What
// has just been encoded begins at once and is earned afterwards.
int64_t paced_chunk(const StepDraft& draft, const SequenceState& state, int64_t most,
                    const Left& left) {
  if (!draft.plan.encode.empty()) return 0;
  if (draft.media_must_wait() && !begins(state)) return 0;
  const int64_t in_time = draft.predictors.cost.prefill_rows_within(
      draft.plan.rows_shape, state.n_cached, most,
      std::min(left.time_ms, paced_slice_ms(draft, state)));
  const int64_t n = legal_chunk(state, in_time, draft.config.chunk_rows);
  return n > 0 || draft.has_prefill() ? n : forced_chunk(draft, state, most, left);
}

void add_chunk(StepDraft& draft, const SequenceState& state, int64_t n_rows) {
  const int64_t pages = kv_pages_to_add(state, n_rows, draft.config.page_tokens);
  draft.take_pages(state, pages);
  draft.plan.rows.push_back({state.id, n_rows, pages});
  draft.plan.rows_shape.add_prefill(static_cast<double>(n_rows),
                                    static_cast<double>(state.n_cached));
}

Left time_left(const StepDraft& draft) {
  const SchedulerConfig& config = draft.config;
  const StepPlan& plan = draft.plan;
  Left left{config.step_rows - static_cast<int64_t>(plan.n_decode_rows), kNever, true};
  if (plan.n_decode_rows == 0) return left;
  left.time_ms =
      plan.budget_ms * config.step_fill - draft.predictors.cost.predict_ms(plan.encode_shape);
  double longest = kNever;
  for (const ActiveSequence& active : draft.active) {
    if (active.decodes) longest = std::min(longest, longest_gap_ms(*active.state, config));
  }
  left.longest = plan.budget_ms >= longest;
  return left;
}

// Paced media go forward one sequence at a time, in steps that prefill nothing else but where the
// decoder begins with one.
void add_paced_chunk(StepDraft& draft, const Left& left) {
  const CostModel& cost = draft.predictors.cost;
  for (const ActiveSequence& active : draft.active) {
    const SequenceState& state = *active.state;
    if (active.decodes || active.paused || !has_media_ahead(state)) continue;
    if (draft.has_prefill() && !begins(state)) continue;
    const int64_t most = page_limited_rows(draft, state, left.rows);
    const int64_t n = most > 0 ? paced_chunk(draft, state, most, left) : 0;
    if (n == 0) continue;
    const double before = cost.predict_ms(draft.plan.rows_shape);
    add_chunk(draft, state, n);
    draft.media_credit_ms -= cost.predict_ms(draft.plan.rows_shape) - before;
    return;
  }
}

}  // namespace

void cut_prefill(StepDraft& draft) {
  const SchedulerConfig& config = draft.config;
  const CostModel& cost = draft.predictors.cost;
  StepPlan& plan = draft.plan;
  Left left = time_left(draft);
  for (const ActiveSequence& active : draft.active) {
    const SequenceState& state = *active.state;
    if (active.decodes || active.paused || left.rows <= 0) continue;
    if (draft.media_paced && has_media_ahead(state)) continue;
    const int64_t most = page_limited_rows(draft, state, left.rows);
    if (most == 0) continue;
    const bool first = !draft.has_prefill();
    const int64_t in_time =
        cost.prefill_rows_within(plan.rows_shape, state.n_cached, most, left.time_ms);
    int64_t n = legal_chunk(state, in_time, config.chunk_rows);
    if (first && n < std::min(most, config.min_chunk_rows)) {
      n = std::max(n, forced_chunk(draft, state, most, left));
    }
    if (n > 0) {
      add_chunk(draft, state, n);
      left.rows -= n;
    }
    // Time is up, or is kept for the span that comes next.
    if (in_time < most) break;
  }
  if (draft.media_paced) add_paced_chunk(draft, left);
}

}  // namespace triptych
