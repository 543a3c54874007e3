#pragma once

#include <span>

#include "engine/candidates.h"
#include "request/request.h"

namespace triptych {

/// Log-softmax, in double, of logits [n] at `token`, and at the `n_top` most likely ids; fewer
/// where logits are minus infinity.
TokenLogprobs token_logprobs(std::span<const float> logits, int32_t token, int64_t n_top,
                             SamplerScratch& scratch);

}  // namespace triptych
