#include "engine/candidates.h"

#include <algorithm>
#include <cmath>

namespace triptych {
namespace {

// Up to here a heap of the best so far is quicker than a selection over all.
constexpr size_t kHeapLimit = 1024;

bool higher(const RankedLogit& a, const RankedLogit& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

bool sooner(const MassItem& a, const MassItem& b) {
  return a.key < b.key || (a.key == b.key && a.id < b.id);
}

/// The first item, in the order of `sooner`, at which the sum of masses reaches `target`; the last
/// one when rounding keeps it below. Selects in the half that holds the place again and again, so
/// that the cost is that of all items once, twice at most. Reorders `items`, which is not empty.
MassItem reach(std::vector<MassItem>& items, double target) {
  auto begin = items.begin();
  auto end = items.end();
  double before = 0;
  while (end - begin > 1) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, sooner);
    double mass = 0;
    for (auto item = begin; item != middle; ++item) mass += item->mass;
    if (before + mass >= target) {
      end = middle;
    } else {
      before += mass;
      begin = middle;
    }
  }
  return *begin;
}

double total_weight(std::span<const Candidate> candidates) {
  double total = 0;
  for (const Candidate& c : candidates) total += c.weight;
  return total;
}

}  // namespace

void largest_logits(std::span<const float> logits, size_t k, std::vector<RankedLogit>& out) {
  out.clear();
  if (k == 0) return;
  const bool heap = k <= kHeapLimit;
  for (size_t i = 0; i < logits.size(); ++i) {
    const RankedLogit item{logits[i], static_cast<int32_t>(i)};
    if (item.logit == -INFINITY) continue;
    if (!heap || out.size() < k) {
      out.push_back(item);
      if (heap) std::push_heap(out.begin(), out.end(), higher);
    } else if (item.logit > out.front().logit) {  // the front is the last in rank
      std::pop_heap(out.begin(), out.end(), higher);
      out.back() = item;
      std::push_heap(out.begin(), out.end(), higher);
    }
  }
  if (out.empty()) return;
  const auto last = out.begin() + static_cast<ptrdiff_t>(std::min(k, out.size()) - 1);
  std::nth_element(out.begin(), last, out.end(), higher);
  out.erase(last + 1, out.end());
}

void sort_by_rank(std::vector<RankedLogit>& logits) {
  std::sort(logits.begin(), logits.end(), higher);
}

void make_candidates(std::span<const float> logits, float best, double temperature, int64_t top_k,
                     SamplerScratch& scratch) {
  RankedLogit last{-INFINITY, 0};
  if (top_k > 0 && static_cast<size_t>(top_k) < logits.size()) {
    largest_logits(logits, static_cast<size_t>(top_k), scratch.ranked);
    last = scratch.ranked.back();
  }
  scratch.candidates.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    const RankedLogit item{logits[i], static_cast<int32_t>(i)};
    if (item.logit == -INFINITY || higher(last, item)) continue;
    // A quotient: with a tiny temperature its reciprocal would not be finite.
    const double scaled =
        (static_cast<double>(item.logit) - static_cast<double>(best)) / temperature;
    scratch.candidates.push_back({scaled, std::exp(scaled), item.id});
  }
}

void keep_top_p(double p, SamplerScratch& scratch) {
  std::vector<Candidate>& candidates = scratch.candidates;
  const double total = total_weight(candidates);
  // All below this weight together hold less than half of what may be cut off, so the selection can
  // do without them; of a peaked distribution over a large vocabulary hardly any are left.
  const double negligible = 0.5 * (1 - p) * total / static_cast<double>(candidates.size());
  scratch.items.clear();
  for (const Candidate& c : candidates) {
    if (c.weight >= negligible) scratch.items.push_back({-c.weight, c.weight, c.id});
  }
  const MassItem last = reach(scratch.items, p * total);
  std::erase_if(candidates, [&](const Candidate& c) {
    return sooner(last, {-c.weight, c.weight, c.id});
  });
}

void keep_min_p(double p, SamplerScratch& scratch) {
  double most = 0;
  for (const Candidate& c : scratch.candidates) most = std::max(most, c.weight);
  std::erase_if(scratch.candidates, [&](const Candidate& c) { return c.weight < p * most; });
}

void keep_typical(double p, SamplerScratch& scratch) {
  std::vector<Candidate>& candidates = scratch.candidates;
  const double total = total_weight(candidates);
  const double log_total = std::log(total);
  double entropy = 0;
  for (const Candidate& c : candidates) {
    if (c.weight > 0) entropy -= c.weight / total * (c.log_weight - log_total);
  }
  const auto distance = [&](const Candidate& c) {
    return std::abs(log_total - c.log_weight - entropy);
  };
  scratch.items.clear();
  for (const Candidate& c : candidates) scratch.items.push_back({distance(c), c.weight, c.id});
  const double last = reach(scratch.items, p * total).key;
  std::erase_if(candidates, [&](const Candidate& c) { return distance(c) > last; });
}

int32_t draw_candidate(double uniform, std::span<const Candidate> candidates) {
  const double target = uniform * total_weight(candidates);
  double sum = 0;
  int32_t last = -1;
  for (const Candidate& c : candidates) {
    if (c.weight <= 0) continue;
    sum += c.weight;
    last = c.id;
    if (target < sum) break;
  }
  return last;
}

}  // namespace triptych
