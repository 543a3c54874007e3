#pragma once

#include "backends/cpu/cpu_isa.h"
#include "backends/cpu/linear_isa.h"
#include "ops/kernel_table.h"

namespace triptych {

/// Puts linear of `level` into the table.
void fill_cpu_linear(KernelTable& table, CpuIsa level);

}  // namespace triptych
