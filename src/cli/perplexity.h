#pragma once

#include <string>

#include "cli/session.h"

namespace triptych::cli {

struct PerplexityOptions {
  SessionOptions session;
  std::string file;
  int64_t window = 1024;
  bool json = false;
};

/// `triptych perplexity`: exp of the mean negative log-likelihood of a text's tokens, in windows
/// that do not overlap; the first token of a window is not scored.
Status run_perplexity(const PerplexityOptions& options);

}  // namespace triptych::cli
