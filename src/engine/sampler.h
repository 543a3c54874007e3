#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/candidates.h"
#include "engine/logit_processors.h"
#include "request/request.h"

namespace triptych {

/// What a sampler is told beside the request's fields.
struct SamplerSetup {
  std::vector<int32_t> eos_ids;                 ///< end tokens of the model
  uint64_t seed = 0;                            ///< where the request brings none (SeedSource)
  uint32_t stream = 0;                          ///< index of the answer among the n of its request
  int64_t n_known = 0;                          ///< ids at or beyond are never drawn
  std::unique_ptr<TokenConstraint> constraint;  ///< null: free
};

/// A token that was drawn, and its log-probabilities when the request asks for them.
struct DrawnToken {
  int32_t token = -1;
  std::optional<TokenLogprobs> logprobs;
};

/// Draws the tokens of one answer. The steps are those of Hugging Face generate in its order, with
/// OpenAI's penalties behind its repetition penalty:
///
///   logit bias, repetition penalty, frequency and presence penalty, min_tokens (no end token),
///   grammar | temperature, top-k, top-p, min-p, typical | draw
///
/// Temperature 0 takes the highest logit behind the first bar. Each step of the second group works
/// on the probabilities that the one before leaves, as there. Ties go to the lowest id, where
/// Hugging Face's top-k keeps all that are equal to the last.
///
/// The state is what accept() was told, nothing else: sample() may be called again and gives the
/// same token, and a sampler made anew and told the same tokens goes on as the first would have.
/// Threads: one at a time; prepare_mask() may run on another thread than the rest, between accept()
/// and sample(), while the step that gives the logits runs.
class Sampler {
 public:
  /// `params` have been validated.
  Sampler(SamplingParams params, SamplerSetup setup);

  /// Tokens of the prompt, for the repetition penalty.
  void observe_prompt(std::span<const int32_t> ids);

  /// `token` is part of the answer now (the token that ends it is not). kInvalidArgument when the
  /// grammar does not allow it.
  Status accept(int32_t token);

  /// Works out the grammar's mask for the next token ahead of sample(), which else does it itself.
  /// Nothing without a grammar; what goes wrong is sample()'s to say.
  void prepare_mask();

  /// Draws from logits [n_vocab]. kInternal when a logit is NaN or none is finite: the numbers of
  /// the model broke. kInvalidArgument when the request leaves nothing to draw: a grammar that this
  /// vocabulary cannot follow.
  Result<DrawnToken> sample(std::span<const float> logits, SamplerScratch& scratch);

  /// Whether the answer ends instead of taking this token: an end token, a stop id.
  bool ends(int32_t token) const;
  /// True when the grammar leaves nothing to follow: the answer ends without an end token.
  bool finished() const { return constraint_ != nullptr && constraint_->finished(); }
  bool has_grammar() const { return constraint_ != nullptr; }
  /// Tokens of the answer.
  int64_t n_accepted() const { return n_accepted_; }

 private:
  bool holds_ends() const { return n_accepted_ < params_.min_tokens; }
  bool adjusts() const;
  Result<std::span<const float>> adjust(std::span<const float> logits, bool hold_ends,
                                        SamplerScratch& scratch);
  int32_t draw(std::span<const float> logits, int32_t best, SamplerScratch& scratch) const;

  SamplingParams params_;
  std::vector<int32_t> end_ids_;  ///< end tokens that are not ignored, and stop ids
  uint64_t seed_ = 0;
  uint32_t stream_ = 0;
  size_t n_known_ = 0;
  std::unique_ptr<TokenConstraint> constraint_;
  TokenCounts counts_;
  int64_t n_accepted_ = 0;
  std::vector<uint32_t> mask_;
  bool mask_ready_ = false;
  Status mask_status_;
};

}  // namespace triptych
