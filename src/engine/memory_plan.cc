#include "engine/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "sched/byte_factor.h"

namespace triptych {

namespace {

/// Pages that a sequence of `n_tokens` may take: a picture's rows own their pages, so some stay
/// partly filled (cache/kv/CONTRACT.md, 7).
int64_t pages_of(const ModelSpec& spec, int64_t n_tokens) {
  const int64_t n_media = spec.vision ? n_tokens / spec.vision->n_features() : 0;
  return ceil_div(n_tokens, kPageTokens) + 2 * n_media;
}

/// Rows of a step where a sequence holds `context_tokens`, scratch of a step and of encoding a
/// picture, and what a picture holds between slices.
void plan_step_memory(const Model& model, const PlanLimits& limits, int64_t context_tokens,
                      int n_threads, MemoryPlan& plan) {
  const TextSpec& text = model.spec.text;
  plan.chunk_rows = std::max<int64_t>(1, std::min(limits.chunk_rows, context_tokens));
  plan.step_rows = plan.chunk_rows + plan.max_sequences;
  size_t workspace = static_cast<size_t>(plan.step_rows * text.hidden_size * 4) + (64 << 10) +
                     model.decoder->workspace_bytes(plan.step_rows, plan.max_sequences);
  if (model.spec.vision) {
    const int64_t n = model.spec.vision->n_features();
    workspace = std::max({workspace, model.vision_tower->workspace_bytes(n_threads),
                          model.projector->workspace_bytes(n)});
    plan.encode_bytes = static_cast<uint64_t>(
        4 * (model.spec.vision->n_positions() * model.spec.vision->hidden_size +
             n * model.spec.vision->feature_width() + n * text.hidden_size));
  }
  plan.workspace_bytes = workspace + static_cast<size_t>(plan.max_sequences * text.vocab_size * 4);
}

/// What the scheduler sets aside for a picture before it has seen one.
uint64_t picture_bytes(const ModelSpec& spec, const MemoryPlan& plan) {
  if (!spec.vision) return 0;
  const auto side = static_cast<uint64_t>(spec.vision->image_size);
  return ByteFactor(Precision::kF32).reserve(3 * side * side * sizeof(float) + plan.encode_bytes);
}

/// What the plan's cap leaves for the KV cache; media get their caps.
Result<uint64_t> kv_cap(const PlanLimits& limits, uint64_t one_picture, MemoryPlan& plan) {
  if (limits.memory_cap_bytes == 0) return limits.kv_cap_bytes;
  const uint64_t taken = plan.total();
  if (limits.memory_cap_bytes <= taken) {
    return resource_exhausted(
        fmt::format("a memory cap of {} MiB does not hold the model: its weights take {} MiB, "
                    "what a step works in {} MiB, and the KV cache needs room too",
                    limits.memory_cap_bytes >> 20, plan.weight_bytes >> 20,
                    (plan.workspace_bytes + plan.encode_bytes) >> 20));
  }
  const uint64_t left = limits.memory_cap_bytes - taken;
  plan.media = plan.media.within(left, one_picture);
  return std::min(limits.kv_cap_bytes, left - std::min(left, plan.media.total()));
}

}  // namespace

MediaCaps MediaCaps::within(uint64_t bytes, uint64_t one_item) const {
  const uint64_t sixteenth = bytes / 16;
  return {.encoder_cache_bytes = std::min(encoder_cache_bytes, sixteenth),
          .pixel_cache_bytes = std::min(pixel_cache_bytes, 2 * sixteenth),
          .in_work_bytes = std::min(in_work_bytes, std::max(2 * sixteenth, one_item)),
          .request_bytes = std::min(request_bytes, 3 * sixteenth)};
}

Result<MemoryPlan> plan_memory(const Model& model, DType kv_dtype, const PlanLimits& limits,
                               int n_threads) {
  const TextSpec& text = model.spec.text;
  MemoryPlan plan;
  plan.weight_bytes = model.weights->n_bytes();
  plan.kv = {kv_dtype, text.n_layers, text.n_kv_heads, text.head_dim};
  if (limits.context_tokens > text.max_positions) {
    return invalid_argument(fmt::format("a context of {} tokens is beyond the model's {}",
                                        limits.context_tokens, text.max_positions));
  }
  const int64_t wanted = limits.context_tokens > 0 ? limits.context_tokens : text.max_positions;
  plan.max_sequences = std::max<int64_t>(1, limits.max_sequences);
  plan.media = limits.media;
  if (!model.spec.vision) {
    plan.media.encoder_cache_bytes = plan.media.pixel_cache_bytes = plan.media.in_work_bytes = 0;
  }
  plan_step_memory(model, limits, wanted, n_threads, plan);
  TRIPTYCH_ASSIGN_OR_RETURN(const uint64_t kv_cap_bytes,
                            kv_cap(limits, picture_bytes(model.spec, plan), plan));
  const int64_t most_pages = static_cast<int64_t>(kv_cap_bytes) / plan.kv.page_bytes();
  const int64_t one_context = pages_of(model.spec, wanted);
  plan.kv_pages = std::min(most_pages, one_context * plan.max_sequences);
  if (one_context > most_pages) {
    if (limits.context_tokens > 0 || most_pages == 0) {
      return resource_exhausted(
          fmt::format("a context of {} tokens needs {} MiB of KV cache, the cap is {} MiB", wanted,
                      (one_context * plan.kv.page_bytes()) >> 20, kv_cap_bytes >> 20));
    }
  }
  plan.context_tokens = wanted;
  while (pages_of(model.spec, plan.context_tokens) > plan.kv_pages) --plan.context_tokens;
  plan.kv_bytes = static_cast<uint64_t>(plan.kv_pages * plan.kv.page_bytes());
  plan_step_memory(model, limits, plan.context_tokens, n_threads, plan);
  return plan;
}

}  // namespace triptych
