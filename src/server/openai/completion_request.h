#pragma once

#include "server/openai/call_fields.h"

namespace triptych::openai {

/// Reads a request of /v1/completions: one prompt, taken as it is, without a chat template. Without
/// max_tokens the answer has at most 16, as in OpenAI's API. Otherwise as read_chat_call.
Result<Call> read_completion_call(const JsonRef& body, const SamplingParams& defaults,
                                  const CallLimits& limits = {});

}  // namespace triptych::openai
