#include "models/layers/decoder_ends.h"

#include <fmt/format.h>

#include "ops/embedding.h"
#include "ops/rows.h"

namespace triptych {

Result<DecoderEnds> DecoderEnds::load(const TextSpec& spec, WeightStore& store) {
  DecoderEnds ends;
  TRIPTYCH_ASSIGN_OR_RETURN(ends.embed_tokens_, store.table("text.embed_tokens.weight",
                                                            spec.vocab_size, spec.hidden_size));
  TRIPTYCH_ASSIGN_OR_RETURN(ends.norm_,
                            RmsNorm::load(store, "text.norm", spec.hidden_size, spec.rms_norm_eps));
  // Tied by evidence: released checkpoints carry wrong flags, a stored head is always right.
  if (store.has("lm_head.weight") || !spec.tied) {
    store.begin_part("lm_head");
    TRIPTYCH_ASSIGN_OR_RETURN(
        ends.lm_head_, store.linear({"lm_head"}, {spec.vocab_size}, spec.hidden_size, false));
  }
  return ends;
}

Status DecoderEnds::embed(const OpContext& ctx, const int32_t* ids, const View& out) const {
  return embedding(ctx, embed_tokens_.weight(), ids, out);
}

Status DecoderEnds::check(const DecoderBatch& batch, const View& logits) const {
  const bool fits = batch.hidden.shape.rank() == 2 &&
                    batch.hidden.shape[1] == embed_tokens_.n_in() &&
                    logits.shape == Shape{batch.n_logit_rows, embed_tokens_.n_out()};
  if (fits) return Status::ok();
  return internal_error(fmt::format("decoder: hidden {}, logits {} for {} rows",
                                    batch.hidden.shape.to_string(), logits.shape.to_string(),
                                    batch.n_logit_rows));
}

Status DecoderEnds::last_logits(const OpContext& ctx, const DecoderBatch& batch,
                                const View& logits) const {
  if (batch.n_logit_rows == 0) return Status::ok();
  const ArenaScope scope(*ctx.scratch);
  TRIPTYCH_ASSIGN_OR_RETURN(
      View last,
      ctx.scratch->allocate(DType::kF32, Shape{batch.n_logit_rows, embed_tokens_.n_in()}));
  TRIPTYCH_RETURN_IF_ERROR(
      gather_rows(ctx, batch.hidden, batch.logit_rows, batch.n_logit_rows, last, nullptr));
  TRIPTYCH_RETURN_IF_ERROR(norm_.forward(ctx, last, last));
  ctx.registry->tap("decoder.norm", last);
  return head().forward(ctx, last, logits);
}

OpCost DecoderEnds::cost(int64_t n_logit_rows) const {
  return n_logit_rows > 0 ? head().cost(n_logit_rows) : OpCost{};
}

}  // namespace triptych
