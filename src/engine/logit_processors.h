#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>

#include "request/sampling_params.h"

namespace triptych {

/// How often tokens stand in the prompt and in the answer, as far as the penalties ask. Media
/// positions count as their media token, as in Hugging Face.
class TokenCounts {
 public:
  struct Count {
    bool in_prompt = false;
    int64_t in_answer = 0;
  };
  void add_prompt(std::span<const int32_t> ids);
  void add_answer(int32_t id) { ++counts_[id].in_answer; }
  const std::unordered_map<int32_t, Count>& counts() const { return counts_; }

 private:
  std::unordered_map<int32_t, Count> counts_;
};

// Each function changes logits [n] in place; ids outside are passed over. Sums are worked out in
// double and end within the finite floats, so that no value of a request makes an infinity or NaN.

/// logit += bias.
void add_bias(std::span<float> logits, std::span<const std::pair<int32_t, double>> biases);

/// For tokens of prompt or answer: logit / penalty when positive, logit * penalty when negative
/// (Hugging Face's RepetitionPenaltyLogitsProcessor; Keskar et al. 2019).
void penalise_repetition(std::span<float> logits, const TokenCounts& counts, double penalty);

/// For tokens of the answer: logit -= count * frequency + presence (OpenAI's definition).
void penalise_answer(std::span<float> logits, const TokenCounts& counts, double frequency,
                     double presence);

/// Minus infinity for these ids.
void forbid(std::span<float> logits, std::span<const int32_t> ids);

/// Minus infinity for every id whose bit is not set (lowest bit first), and for those beyond the
/// mask.
void keep_allowed(std::span<float> logits, std::span<const uint32_t> mask);

}  // namespace triptych
