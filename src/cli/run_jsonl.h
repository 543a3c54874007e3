#pragma once

#include <string>

#include "cli/session.h"

namespace triptych::cli {

struct RunOptions {
  SessionOptions session;
  std::string jsonl;         ///< file of requests, one JSON object a line
  std::string out;           ///< file of results; empty: stdout
  int64_t concurrency = 16;  ///< sequences in work at once
};

/// `triptych run`: answers a file of requests, many at once, and writes a JSON line for each in the
/// order in which they end. A request that fails gets a line with its error and the others go on;
/// the status is then that of the first failure in the file.
///
/// A request: {"id": any, "messages": [{"role": "user", "content": "text" or [{"type": "text",
/// "text": ...}, {"type": "image", "path": file, relative to the JSONL}]}], "max_tokens": n,
/// "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed", "n", "stop",
/// "ignore_eos", "class": "interactive", "standard" or "batch"}. "prompt" in place of "messages" is
/// taken as it is.
///
/// A result: {"id", "line", "choices": [{"text", "finish_reason"}], "usage", "timeline":
/// {"total_ms", a time for each stage ("fetch_ms", "queue_ms", "process_ms", "media_decode_ms",
/// "wait_ms", "encode_ms", "prefill_ms", "decode_ms"; they sum to the total), "media_tokens",
/// "media_tokens_kept", "media_bytes", "cache": "none", "encoder" or "prefix", "cached_tokens",
/// "media_in_prefix", "media_in_encoder"}}; with "error" in place of choices and usage when it
/// failed.
Status run_jsonl(const RunOptions& options);

}  // namespace triptych::cli
