#include "engine/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"

namespace triptych {

namespace {

/// Pages that a sequence of `n_tokens` may take: a picture's rows own their pages, so some stay
/// partly filled (cache/kv/CONTRACT.md, 7).
int64_t pages_of(const ModelSpec& spec, int64_t n_tokens) {
  const int64_t n_media = spec.vision ? n_tokens / spec.vision->n_features() : 0;
  return ceil_div(n_tokens, kPageTokens) + 2 * n_media;
}

}  // namespace

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
  const int64_t most_pages = static_cast<int64_t>(limits.kv_cap_bytes) / plan.kv.page_bytes();
  const int64_t wanted = limits.context_tokens > 0 ? limits.context_tokens : text.max_positions;
  const int64_t one_context = pages_of(model.spec, wanted);
  plan.max_sequences = std::max<int64_t>(1, limits.max_sequences);
  plan.kv_pages = std::min(most_pages, one_context * plan.max_sequences);
  if (one_context > most_pages) {
    if (limits.context_tokens > 0 || most_pages == 0) {
      return resource_exhausted(
          fmt::format("a context of {} tokens needs {} MiB of KV cache, the cap is {} MiB", wanted,
                      (one_context * plan.kv.page_bytes()) >> 20, limits.kv_cap_bytes >> 20));
    }
  }
  plan.context_tokens = wanted;
  while (pages_of(model.spec, plan.context_tokens) > plan.kv_pages) --plan.context_tokens;
  plan.kv_bytes = static_cast<uint64_t>(plan.kv_pages * plan.kv.page_bytes());
  plan.chunk_rows = std::max<int64_t>(1, std::min(limits.chunk_rows, plan.context_tokens));
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
  return plan;
}

}  // namespace triptych
