#include "engine/logprobs.h"

#include <algorithm>
#include <cmath>

namespace triptych {

TokenLogprobs token_logprobs(std::span<const float> logits, int32_t token, int64_t n_top,
                             SamplerScratch& scratch) {
  const double best = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (float logit : logits) total += std::exp(static_cast<double>(logit) - best);
  // The difference first: beside a huge logit the logarithm would vanish.
  const auto logprob = [best, log_total = std::log(total)](float logit) {
    return (static_cast<double>(logit) - best) - log_total;
  };
  TokenLogprobs out;
  out.logprob = logprob(logits[static_cast<size_t>(token)]);
  largest_logits(logits, static_cast<size_t>(n_top), scratch.ranked);
  sort_by_rank(scratch.ranked);
  for (const RankedLogit& item : scratch.ranked) {
    out.top.push_back({item.id, logprob(item.logit)});
  }
  return out;
}

}  // namespace triptych
