#include "models/layers/decoder_workspace.h"

#include <algorithm>

#include "models/layers/cached_attention.h"
#include "models/layers/gated_mlp.h"

namespace triptych {

size_t decoder_workspace_bytes(const TextSpec& spec, int64_t n_rows, int64_t n_logit_rows) {
  const int64_t d = spec.hidden_size;
  const auto rope_width = static_cast<int64_t>(2 * spec.rope.inv_freq.size());
  const int64_t row =
      rope_width + d + std::max(attention_scratch_width(spec), GatedMlp::scratch_width(spec));
  const int64_t deepest = std::max({d, spec.n_heads * spec.head_dim, spec.intermediate_size});
  return static_cast<size_t>(n_rows * row * 4 + n_logit_rows * d * 4) +
         linear_scratch_bytes(std::max(n_rows, n_logit_rows), deepest, MatmulMode::kF32) +
         (64 << 10);
}

}  // namespace triptych
