#pragma once

#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "ops/kernel_table.h"

namespace triptych {

/// What the machine can do at most, measured: the ends of a roofline.
struct Ceilings {
  double f32_flops = 0;         ///< products of f32, all threads of the pool, per second
  double bf16_flops = 0;        ///< products of bf16; 0 where the machine has none of its own
  double read_bytes_per_s = 0;  ///< of memory far larger than the caches
};

/// A backend ready for use: its kernels and what the engine must know to choose among modes.
struct Backend {
  KernelTable kernels;
  bool native_bf16_matmul = false;  ///< MatmulMode::kBF16 is available
  std::string description;          ///< for people: "CPU avx512_bf16, AMD EPYC 9B45"
  std::string level;                ///< of the machine, that the kernels use: "avx512_bf16"
  std::vector<std::string> facts;   ///< what it found, a line each, for `triptych doctor`
  std::vector<std::string> advice;  ///< what would make it faster, a sentence each
  Ceilings (*measure_ceilings)(ThreadPool& pool) = nullptr;  ///< takes about a second
};

}  // namespace triptych
