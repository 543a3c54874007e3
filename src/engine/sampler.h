#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "request/request.h"

namespace triptych {

/// Draws tokens of one sequence. The order of the steps is that of Hugging Face generate:
/// repetition penalty, temperature, top-k, top-p, min-p, draw. Same seed, same tokens.
class Sampler {
 public:
  /// `params` have been validated.
  explicit Sampler(const SamplingParams& params);

  /// Tokens that count for the repetition penalty: the prompt's, and those drawn.
  void observe(std::span<const int32_t> ids);

  /// Draws from logits [n_vocab]; ids at or beyond `n_known` are never drawn. Ties go to the lowest
  /// id. kInternal when a logit is NaN or all are minus infinity: the numbers of the model broke.
  Result<int32_t> sample(std::span<const float> logits, int64_t n_known);

 private:
  struct Candidate {
    float logit;
    int32_t id;
  };
  void penalise(std::vector<float>& logits) const;
  void keep_top_k(std::vector<Candidate>& candidates) const;
  int32_t draw(std::vector<Candidate>& candidates);

  SamplingParams params_;
  std::mt19937_64 random_;
  std::vector<bool> seen_;
};

}  // namespace triptych
