#pragma once

#include <span>
#include <string_view>

#include "base/json.h"
#include "request/sampling_params.h"

namespace triptych {

/// The sampling fields that requests in JSON share; names as in OpenAI's and vLLM's APIs.
std::span<const std::string_view> sampling_fields();

/// Reads them. Absent ones keep what is in `out`. Errors name the field.
Status read_sampling(const JsonRef& json, SamplingParams& out);

}  // namespace triptych
