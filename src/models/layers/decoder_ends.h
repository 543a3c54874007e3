#pragma once

#include "models/layers/norm_layer.h"
#include "models/model.h"

namespace triptych {

/// What lies before the first block of a decoder and behind the last one: the table of token
/// embeddings, the final norm, and the head, which may be the table once more.
class DecoderEnds {
 public:
  DecoderEnds() = default;
  /// Binds text.embed_tokens, text.norm and lm_head; the head counts as a part of its own.
  static Result<DecoderEnds> load(const TextSpec& spec, WeightStore& store);

  /// ids [T] -> out [T, hidden_size]
  Status embed(const OpContext& ctx, const int32_t* ids, const View& out) const;
  /// Refuses a batch whose views do not fit the model.
  Status check(const DecoderBatch& batch, const View& logits) const;
  /// Norms the rows of batch.hidden whose logits are wanted and fills logits
  /// [n_logit_rows, vocab_size]; offers the tap decoder.norm.
  Status last_logits(const OpContext& ctx, const DecoderBatch& batch, const View& logits) const;
  OpCost cost(int64_t n_logit_rows) const;

 private:
  const Linear& head() const { return lm_head_.n_out() > 0 ? lm_head_ : embed_tokens_; }

  Linear embed_tokens_;
  RmsNorm norm_;
  Linear lm_head_;  ///< empty when tied
};

}  // namespace triptych
