#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

#include "request/sampling_params.h"

// Naive float64 oracle of sampling: full sorts and one list of scores that every step filters, as
// Hugging Face's logits processors are written. Minus infinity is "cannot be drawn".
namespace triptych::ref {

using Scores = std::vector<double>;

inline constexpr double kOut = -INFINITY;

inline Scores softmax(const Scores& scores) {
  const double best = *std::max_element(scores.begin(), scores.end());
  Scores out;
  double total = 0;
  for (double s : scores) total += out.emplace_back(std::exp(s - best));
  for (double& p : out) p /= total;
  return out;
}

/// Indices in ascending order of `keys`, equal ones by index.
inline std::vector<size_t> sorted_by(const Scores& keys) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  return order;
}

inline Scores negative(Scores scores) {
  for (double& s : scores) s = -s;
  return scores;
}

inline void top_k(Scores& scores, int64_t k) {
  const std::vector<size_t> order = sorted_by(negative(scores));
  for (size_t i = static_cast<size_t>(k); i < order.size(); ++i) scores[order[i]] = kOut;
}

inline void top_p(Scores& scores, double p) {
  const Scores share = softmax(scores);
  double before = 0;
  for (size_t i : sorted_by(negative(scores))) {
    if (before >= p) scores[i] = kOut;
    before += share[i];
  }
}

inline void min_p(Scores& scores, double p) {
  const Scores share = softmax(scores);
  const double most = *std::max_element(share.begin(), share.end());
  for (size_t i = 0; i < scores.size(); ++i) {
    if (share[i] < p * most) scores[i] = kOut;
  }
}

inline void typical_p(Scores& scores, double p) {
  const Scores share = softmax(scores);
  double entropy = 0;
  for (double s : share) entropy -= s > 0 ? s * std::log(s) : 0;
  Scores distance;
  for (double s : share) distance.push_back(std::abs(-std::log(s) - entropy));
  double sum = 0;
  double last = 0;
  for (size_t i : sorted_by(distance)) {
    last = distance[i];
    sum += share[i];
    if (sum >= p) break;
  }
  for (size_t i = 0; i < scores.size(); ++i) {
    if (distance[i] > last) scores[i] = kOut;
  }
}

/// What the tokens so far are.
struct History {
  std::vector<int32_t> prompt;
  std::vector<int32_t> answer;
};

/// Bias and penalties, in place.
inline void penalise(Scores& scores, const SamplingParams& p, const History& history) {
  std::map<int32_t, int> answer;
  std::map<int32_t, int> all;
  for (int32_t id : history.answer) ++answer[id], ++all[id];
  for (int32_t id : history.prompt) ++all[id];
  for (const auto& [id, bias] : p.logit_bias) scores[static_cast<size_t>(id)] += bias;
  for (const auto& [id, count] : all) {
    double& s = scores[static_cast<size_t>(id)];
    s = s < 0 ? s * p.repetition_penalty : s / p.repetition_penalty;
  }
  for (const auto& [id, count] : answer) {
    scores[static_cast<size_t>(id)] -= count * p.frequency_penalty + p.presence_penalty;
  }
}

/// Probabilities of the next token by all steps; temperature above 0.
inline Scores distribution(Scores scores, const SamplingParams& p, const History& history) {
  penalise(scores, p, history);
  for (double& s : scores) s /= p.temperature;
  if (p.top_k > 0 && p.top_k < static_cast<int64_t>(scores.size())) top_k(scores, p.top_k);
  if (p.top_p < 1) top_p(scores, p.top_p);
  if (p.min_p > 0) min_p(scores, p.min_p);
  if (p.typical_p < 1) typical_p(scores, p.typical_p);
  return softmax(scores);
}

}  // namespace triptych::ref
