#pragma once

#include "server/openai/call_fields.h"

namespace triptych::openai {

/// Reads the list `messages` of a request into one that has none yet. Media come as data URIs, or
/// under names that `limits.sources` takes.
Status read_messages(const JsonRef& messages, const CallLimits& limits, Call& out);

/// Reads a request of /v1/chat/completions; sampling fields that are absent keep `defaults`. A
/// field that is not known, or that asks for what is not there, is an error with its path.
Result<Call> read_chat_call(const JsonRef& body, const SamplingParams& defaults,
                            const CallLimits& limits = {});

}  // namespace triptych::openai
