#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "request/request.h"

namespace triptych::parity {

/// A tensor of golden.safetensors or captured from a tap: float32, dense.
struct Values {
  Shape shape;
  std::vector<float> data;
};

/// One prompt of a case and what transformers computed for it (tools/parity/README.md).
struct GoldenRun {
  std::string name;
  Request request;
  std::vector<int32_t> prompt_ids;
  std::vector<Span> spans;  ///< media is the ordinal
  std::map<std::string, Values> taps;
  std::vector<int32_t> greedy_ids;
  std::vector<double> greedy_margins;
  bool beyond_max_positions = false;
};

struct Golden {
  std::string name;
  std::vector<std::string> checkpoints;
  Json json;  ///< golden.json: tolerances
  double near_tie = 0;
  double near_tie_bf16 = 0;
  std::vector<GoldenRun> runs;

  /// Tolerance of a tap: its own, else that of the longest dotted prefix, else the default.
  double tolerance(const std::string& tap, bool bf16_activations) const;
};

/// Folders below tests/parity/goldens that hold whole-model cases, sorted.
std::vector<std::string> golden_folders();
Result<Golden> load_golden(const std::string& folder);

/// Reads the float32 tensors of a safetensors file (our own reader).
Result<std::map<std::string, Values>> read_tensors(const std::string& path);

}  // namespace triptych::parity
