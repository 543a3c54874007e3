#pragma once

#include <string>

#include "cli/session.h"

namespace triptych::cli {

struct BenchOptions {
  SessionOptions session;
  std::string image;
  int64_t prompt_tokens = 512;
  int64_t gen = 128;
  int64_t repeats = 3;
  bool json = false;
};

/// `triptych bench`: times of the stages of an answer, and how far each is from what the machine
/// can do (its own GEMM peak and read bandwidth, measured in the same run). What did not run or the
/// machine cannot do is left out or null, never 0. Fails when prompt and answer do not fit the
/// context.
Status run_bench(const BenchOptions& options);

}  // namespace triptych::cli
