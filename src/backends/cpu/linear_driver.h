#pragma once

#include "backends/cpu/linear_isa.h"

namespace triptych {

/// Computes a linear call with the kernels of one level: packs x into scratch, then hands out
/// units of work (some rows, some neighbouring panels) to the pool. Which thread takes which unit
/// changes nothing in the result.
void run_linear(const LinearKernels& kernels, const LinearArgs& args, const Stream& stream);

}  // namespace triptych
