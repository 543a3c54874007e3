#include <algorithm>

#include "sched/step_draft.h"

namespace triptych {
namespace {

bool is_in(const std::vector<uint64_t>& items, uint64_t item) {
  return std::find(items.begin(), items.end(), item) != items.end();
}

// The decoder has an encoded item to take over, which comes before the next one's encoding.
bool features_wait(const StepDraft& draft) {
  return std::any_of(draft.active.begin(), draft.active.end(), [](const ActiveSequence& active) {
    const MediaState* next = next_media(*active.state);
    return next != nullptr && next->encoded;
  });
}

double time_for_encoding(const StepDraft& draft) {
  const SchedulerConfig& config = draft.config;
  if (draft.plan.n_decode_rows == 0) return config.encode_slice_ms;
  const double left = draft.plan.budget_ms * config.step_fill -
                      draft.predictors.cost.predict_ms(draft.plan.rows_shape);
  return std::min(config.encode_slice_ms, left);
}

}  // namespace

// Items by urgency of their sequences, as many blocks as the slice holds. At least one block, or
// nothing would ever be encoded; `slice_encoding` off runs one whole item.
void slice_encoding(StepDraft& draft) {
  const SchedulerConfig& config = draft.config;
  const CostModel& cost = draft.predictors.cost;
  if (draft.media_must_wait() || (draft.media_paced && features_wait(draft))) return;
  const double limit = time_for_encoding(draft);
  double used = 0;
  std::vector<uint64_t> started;
  for (const ActiveSequence& active : draft.active) {
    for (size_t m = 0; m < active.state->media.size(); ++m) {
      const MediaState& media = active.state->media[m];
      if (media.encoded || media.blocks_left == 0 || media.end() <= active.state->n_cached ||
          is_in(started, media.item)) {
        continue;
      }
      const double block_ms = std::max(cost.encode_ms(1, media.block_gflop), 1e-6);
      const double most = std::clamp((limit - used) / block_ms, used > 0 ? 0.0 : 1.0,
                                     static_cast<double>(media.blocks_left));
      const int64_t n = config.slice_encoding ? static_cast<int64_t>(most) : media.blocks_left;
      if (n == 0) return;
      started.push_back(media.item);
      draft.plan.encode.push_back({active.state->id, m, n});
      draft.plan.encode_shape.add_encode(static_cast<double>(n), media.block_gflop);
      const double before = used;
      used = cost.predict_ms(draft.plan.encode_shape);
      if (draft.media_paced) draft.media_credit_ms -= used - before;
      if (n < media.blocks_left) return;
      draft.finished_items.push_back(media.item);
      if (!config.slice_encoding || used >= limit) return;
    }
  }
}

}  // namespace triptych
