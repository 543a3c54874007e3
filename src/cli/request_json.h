#pragma once

#include <string>

#include "base/json.h"
#include "engine/engine.h"
#include "request/request.h"

namespace triptych::cli {

/// A line of a request file (run_jsonl.h). Pictures are read from below `folder`; fields that are
/// absent keep what `defaults` says. Errors name file, line and field.
struct RequestLine {
  Json id;
  Request request;
  SubmitOptions options;
};
Result<RequestLine> read_request(const JsonRef& line, const std::string& folder,
                                 const SamplingParams& defaults);

}  // namespace triptych::cli
