#pragma once

#include <string>

#include "cli/session.h"

namespace triptych::cli {

struct EvalOptions {
  SessionOptions session;
  std::string set;     ///< folder with questions.jsonl, set.json and pictures
  int64_t limit = 0;   ///< every n-th question so that about this many are asked; 0: all
  bool blind = false;  ///< each picture replaced by its mean colour
  bool json = false;
};

/// `triptych eval`: answers a question set greedily and prints accuracy by task with 95 %
/// intervals (Wilson, "Probable inference", 1927). Format and scoring: tests/eval/README.md.
Status run_eval(const EvalOptions& options);

}  // namespace triptych::cli
