#pragma once

#include "base/json.h"
#include "request/sampling_params.h"

namespace triptych {

/// Reads the sampling fields that requests in JSON share (names as in OpenAI's and vLLM's APIs):
/// max_tokens, min_tokens, temperature, top_k, top_p, min_p, typical_p, the penalties, n, seed,
/// stop and ignore_eos. Absent ones keep what is in `out`. Errors name the field.
Status read_sampling(const JsonRef& json, SamplingParams& out);

}  // namespace triptych
