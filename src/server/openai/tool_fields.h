#pragma once

#include "server/openai/call_fields.h"

namespace triptych::openai {

/// Reads `tools`, `tool_choice` and `parallel_tool_calls`. Tools that may not be called are not
/// shown to the model.
Status read_tools(const JsonRef& body, const CallLimits& limits, Call& out);

/// Reads what a message says of calls: those of an assistant, or the one that a tool answers.
Status read_message_calls(const JsonRef& json, RequestMessage& message);

}  // namespace triptych::openai
