#pragma once

#include "core/stream.h"
#include "core/tensor.h"
#include "core/tensor_registry.h"
#include "ops/kernel_table.h"

namespace triptych {

/// How products with 16-bit weights are computed.
enum class MatmulMode : uint8_t {
  kF32,   ///< activations stay f32, weights are widened in registers
  kBF16,  ///< activations are rounded to bf16, products summed in f32 (AVX512-BF16, AMX)
};

/// What an operator call needs besides its operands. Borrowed by layers for one step.
struct OpContext {
  const KernelTable* kernels = nullptr;
  Stream stream;
  Arena* scratch = nullptr;            ///< step workspace
  TensorRegistry* registry = nullptr;  ///< never null in the engine
  MatmulMode matmul = MatmulMode::kF32;
};

/// Work of one operator call; the profiler, `bench` and the scheduler read the same numbers.
struct OpCost {
  double flops = 0;
  double bytes = 0;

  OpCost& operator+=(const OpCost& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

}  // namespace triptych
