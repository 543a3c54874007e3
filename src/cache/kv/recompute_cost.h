#pragma once

#include <array>
#include <cstdint>

#include "core/tensor_registry.h"

namespace triptych {

/// FLOPs that computing KV again would take: what a cached page is worth. The defaults make all
/// tokens equal and later ones a little dearer.
struct RecomputeCost {
  double flops_per_token = 1;    ///< products of all layers with the weights
  double flops_per_pair = 1e-4;  ///< attention of one token to one token before it
  /// Tower and projector for one row of a modality, by Modality; text has none.
  std::array<double, 4> encode_flops_per_row{};

  /// Of `n_tokens` tokens from `position` on.
  double of(Modality modality, int64_t position, int64_t n_tokens) const {
    const auto n = static_cast<double>(n_tokens);
    const double pairs = n * (static_cast<double>(position) + (n + 1) / 2);
    return n * (flops_per_token + encode_flops_per_row[static_cast<size_t>(modality)]) +
           pairs * flops_per_pair;
  }
};

}  // namespace triptych
