#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace triptych {

/// A token that may be drawn.
struct Candidate {
  double log_weight = 0;  ///< of its probability, relative to the most likely one's: at most 0
  double weight = 1;      ///< exp(log_weight)
  int32_t id = -1;
};

/// A logit and whose it is.
struct RankedLogit {
  float logit = 0;
  int32_t id = -1;
};

/// An item of a list that is cut where its first items hold a share of the whole.
struct MassItem {
  double key = 0;   ///< lowest first; equal ones by id
  double mass = 0;  ///< at least 0
  int32_t id = -1;
};

/// Memory that drawing a token needs: three lists of the vocabulary at most. One for a thread;
/// what it holds between calls has no meaning.
struct SamplerScratch {
  std::vector<float> logits;
  std::vector<RankedLogit> ranked;
  std::vector<Candidate> candidates;
  std::vector<MassItem> items;
};

/// The `k` highest logits, equal ones by lowest id, in no order but that the last in rank stands
/// last; those of minus infinity are left out.
void largest_logits(std::span<const float> logits, size_t k, std::vector<RankedLogit>& out);

/// Highest logit first, equal ones by lowest id.
void sort_by_rank(std::vector<RankedLogit>& logits);

/// Candidates for logits [n] at a temperature above 0, in the order of ids: the `top_k` largest
/// (0 or below: all), those of minus infinity never. `best` is the largest logit and finite.
void make_candidates(std::span<const float> logits, float best, double temperature, int64_t top_k,
                     SamplerScratch& scratch);

// Each of these keeps a part of scratch.candidates, never less than one, and their order. O(n).

/// The fewest most likely ones that hold the share `p` of all; the least of several equally likely
/// ones is the one with the highest id.
void keep_top_p(double p, SamplerScratch& scratch);

/// Those at least `p` times as likely as the most likely one.
void keep_min_p(double p, SamplerScratch& scratch);

/// Those whose surprise is nearest to the expected one (the entropy), the fewest that hold the
/// share `p`, and all as near as the last of them (Meister et al. 2022, as in Hugging Face).
void keep_typical(double p, SamplerScratch& scratch);

/// The candidate under `uniform`, in [0, 1), of the whole mass laid out in the order of ids.
int32_t draw_candidate(double uniform, std::span<const Candidate> candidates);

}  // namespace triptych
