#pragma once

#include <string>

#include "base/json.h"
#include "request/request.h"

namespace triptych::openai {

/// What /v1/chat/completions was asked for, beside the model.
struct ChatCall {
  Request request;
  bool stream = false;
  bool include_usage = false;  ///< a last chunk with the counts, of a stream
};

/// Most of what a request may bring (docs/server.md).
struct ChatLimits {
  size_t max_parts = 10000;  ///< messages and parts together
  size_t max_media = 16;
  int64_t max_n = 8;
};

/// The `model` field. kInvalidArgument when it is missing.
Result<std::string> read_model_name(const JsonRef& body);

/// Reads the list `messages` of a request into one that has none yet.
Status read_messages(const JsonRef& messages, const ChatLimits& limits, Request& request);

/// Reads a chat request; sampling fields that are absent keep `defaults`. Media come as data URIs.
/// A field that is not known, or that asks for what is not there, is an error with its path:
/// nothing is left out in silence but the fields that are no business of the answer (`user`,
/// `metadata`).
Result<ChatCall> read_chat_call(const JsonRef& body, const SamplingParams& defaults,
                                const ChatLimits& limits = {});

}  // namespace triptych::openai
