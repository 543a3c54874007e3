#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "request/request.h"
#include "server/remote/media_source.h"
#include "text/tool_calls.h"

namespace triptych::openai {

/// Which of its tools an answer may call, and how often.
struct ToolUse {
  bool several = true;               ///< or one call at most
  std::optional<ForcedCall> forced;  ///< it is nothing but calls
  std::string named;                 ///< the one tool that it has to call
};

/// A media item that is named and still to be fetched.
struct NamedMedia {
  size_t media = 0;  ///< index into Request::media
  std::string name;
};

/// What is asked of the engine, beside the model, and how the answer is to come.
struct Call {
  Request request;
  bool stream = false;
  bool include_usage = false;  ///< a last chunk with the counts, of a stream
  bool timings = false;        ///< the times of the stages, beside the counts
  std::string echo;            ///< text that each answer begins with
  std::optional<ToolUse> tools;
  std::vector<NamedMedia> named_media;
};

/// Most of what a request may bring (docs/server.md).
struct CallLimits {
  size_t max_parts = 10000;  ///< messages and parts together
  size_t max_media = 16;
  size_t max_tools = 128;
  int64_t max_n = 8;
  const MediaSource* sources = nullptr;  ///< of media that are named; null: none are taken
};

/// The `model` field. kInvalidArgument when it is missing.
Result<std::string> read_model_name(const JsonRef& body);

/// What chat and plain completions have in common: every field is one of `own`, or of those read
/// here, or no business of the answer (`user`, `metadata`), or asks for nothing; stream, sampling
/// and the form of the answer go to `out`, whose sampling holds the defaults.
Status read_common_fields(const JsonRef& body, std::span<const std::string_view> own,
                          const CallLimits& limits, Call& out);

/// The path of a part as the layers below get it for their messages.
std::string part_name(const JsonRef& part);

}  // namespace triptych::openai
