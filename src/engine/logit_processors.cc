#include "engine/logit_processors.h"

#include <algorithm>
#include <limits>

namespace triptych {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

bool within(int32_t id, std::span<const float> logits) {
  return id >= 0 && static_cast<size_t>(id) < logits.size();
}

/// Replaces a logit; one of minus infinity, which the model never wants, stays.
void put(float& logit, double value) {
  constexpr double kMax = std::numeric_limits<float>::max();
  if (logit != kForbidden) logit = static_cast<float>(std::clamp(value, -kMax, kMax));
}

}  // namespace

void TokenCounts::add_prompt(std::span<const int32_t> ids) {
  for (int32_t id : ids) counts_[id].in_prompt = true;
}

void add_bias(std::span<float> logits, std::span<const std::pair<int32_t, double>> biases) {
  for (const auto& [id, bias] : biases) {
    if (!within(id, logits)) continue;
    float& logit = logits[static_cast<size_t>(id)];
    put(logit, static_cast<double>(logit) + bias);
  }
}

void penalise_repetition(std::span<float> logits, const TokenCounts& counts, double penalty) {
  for (const auto& [id, count] : counts.counts()) {
    if (!within(id, logits)) continue;
    float& logit = logits[static_cast<size_t>(id)];
    const double value = logit;
    // Zero stays zero whatever the penalty, also one so small that the quotient is not finite.
    if (value != 0) put(logit, value < 0 ? value * penalty : value / penalty);
  }
}

void penalise_answer(std::span<float> logits, const TokenCounts& counts, double frequency,
                     double presence) {
  for (const auto& [id, count] : counts.counts()) {
    if (count.in_answer == 0 || !within(id, logits)) continue;
    float& logit = logits[static_cast<size_t>(id)];
    put(logit, logit - static_cast<double>(count.in_answer) * frequency - presence);
  }
}

void forbid(std::span<float> logits, std::span<const int32_t> ids) {
  for (int32_t id : ids) {
    if (within(id, logits)) logits[static_cast<size_t>(id)] = kForbidden;
  }
}

void keep_allowed(std::span<float> logits, std::span<const uint32_t> mask) {
  const size_t n_masked = std::min(logits.size(), mask.size() * 32);
  for (size_t word = 0; word * 32 < n_masked; ++word) {
    if (mask[word] == ~uint32_t{0}) continue;
    const size_t end = std::min(n_masked, (word + 1) * 32);
    for (size_t id = word * 32; id < end; ++id) {
      if ((mask[word] >> (id % 32) & 1) == 0) logits[id] = kForbidden;
    }
  }
  std::fill(logits.begin() + static_cast<ptrdiff_t>(n_masked), logits.end(), kForbidden);
}

}  // namespace triptych
