#include "engine/sampler.h"

#include <algorithm>
#include <cmath>

namespace triptych {
namespace {

/// Highest logit first; equal ones by id, so that a sort has one outcome.
bool before(float logit_a, int32_t id_a, float logit_b, int32_t id_b) {
  return logit_a > logit_b || (logit_a == logit_b && id_a < id_b);
}

}  // namespace

Sampler::Sampler(const SamplingParams& params)
    : params_(params), random_(params.seed ? *params.seed : std::random_device{}()) {}

void Sampler::observe(std::span<const int32_t> ids) {
  if (params_.repetition_penalty == 1) return;
  for (int32_t id : ids) {
    if (id < 0) continue;
    if (static_cast<size_t>(id) >= seen_.size()) seen_.resize(static_cast<size_t>(id) + 1);
    seen_[static_cast<size_t>(id)] = true;
  }
}

void Sampler::penalise(std::vector<float>& logits) const {
  const auto penalty = static_cast<float>(params_.repetition_penalty);
  const size_t n = std::min(logits.size(), seen_.size());
  for (size_t i = 0; i < n; ++i) {
    if (seen_[i]) logits[i] = logits[i] < 0 ? logits[i] * penalty : logits[i] / penalty;
  }
}

Result<int32_t> Sampler::sample(std::span<const float> logits, int64_t n_known) {
  const size_t n = std::min(logits.size(), static_cast<size_t>(std::max<int64_t>(0, n_known)));
  const float* data = logits.data();
  std::vector<float> penalised;
  if (params_.repetition_penalty != 1) {
    penalised.assign(data, data + n);
    penalise(penalised);
    data = penalised.data();
  }
  int32_t best = -1;
  for (size_t i = 0; i < n; ++i) {
    if (std::isnan(data[i])) return internal_error("the model gave a logit that is not a number");
    if (best < 0 ? data[i] > -INFINITY : data[i] > data[best]) best = static_cast<int32_t>(i);
  }
  if (best < 0 || std::isinf(data[best])) {
    return internal_error("the model gave no finite logit");
  }
  if (params_.temperature == 0) return best;
  std::vector<Candidate> candidates;
  candidates.reserve(n);
  const double inverse = 1.0 / params_.temperature;
  for (size_t i = 0; i < n; ++i) {
    if (data[i] == -INFINITY) continue;
    candidates.push_back({static_cast<float>((static_cast<double>(data[i]) - data[best]) * inverse),
                          static_cast<int32_t>(i)});
  }
  keep_top_k(candidates);
  return draw(candidates);
}

void Sampler::keep_top_k(std::vector<Candidate>& candidates) const {
  if (params_.top_k <= 0 || static_cast<size_t>(params_.top_k) >= candidates.size()) return;
  const auto cut = candidates.begin() + params_.top_k;
  std::nth_element(
      candidates.begin(), cut, candidates.end(),
      [](const Candidate& a, const Candidate& b) { return before(a.logit, a.id, b.logit, b.id); });
  candidates.erase(cut, candidates.end());
}

int32_t Sampler::draw(std::vector<Candidate>& candidates) {
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return before(a.logit, a.id, b.logit, b.id);
  });
  // Logits are relative to the largest, so the first weight is 1 and nothing overflows.
  std::vector<double> weights;
  double total = 0;
  for (const Candidate& c : candidates) {
    weights.push_back(std::exp(static_cast<double>(c.logit)));
    total += weights.back();
  }
  size_t kept = candidates.size();
  if (params_.top_p < 1) {
    double sum = 0;
    for (kept = 0; kept < weights.size() && sum < params_.top_p * total; ++kept) {
      sum += weights[kept];
    }
    kept = std::max<size_t>(1, kept);
  }
  if (params_.min_p > 0) {
    while (kept > 1 && weights[kept - 1] < params_.min_p * weights[0]) --kept;
  }
  double mass = 0;
  for (size_t i = 0; i < kept; ++i) mass += weights[i];
  // 53 random bits as a number in [0, 1): the same on every standard library.
  double target = static_cast<double>(random_() >> 11) * 0x1p-53 * mass;
  for (size_t i = 0; i + 1 < kept; ++i) {
    target -= weights[i];
    if (target < 0) return candidates[i].id;
  }
  return candidates[kept - 1].id;
}

}  // namespace triptych
