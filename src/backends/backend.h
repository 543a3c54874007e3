#pragma once

#include <string>

#include "ops/kernel_table.h"

namespace triptych {

/// A backend ready for use: its kernels and what the engine must know to choose among modes.
struct Backend {
  KernelTable kernels;
  bool native_bf16_matmul = false;  ///< MatmulMode::kBF16 is available
  std::string description;          ///< for people: "CPU avx512_bf16, AMD EPYC 9B45"
};

}  // namespace triptych
