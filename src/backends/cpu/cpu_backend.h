#pragma once

#include "backends/backend.h"
#include "backends/cpu/cpu_isa.h"
#include "base/settings.h"
#include "base/status.h"

namespace triptych {

/// All kernels for `level`. kUnsupported when this machine lacks it.
Result<KernelTable> make_cpu_kernels(CpuIsa level);

/// Whether kernels of `level` take MatmulMode::kBF16.
bool cpu_has_bf16_matmul(CpuIsa level);

/// The CPU backend at the level that the setting `cpu_isa` names.
Result<Backend> make_cpu_backend(const Settings& settings);

}  // namespace triptych
