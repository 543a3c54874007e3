#pragma once

#include "backends/cpu/cpu_isa.h"
#include "ops/kernel_table.h"

namespace triptych {

/// Fills the slots of all operators but linear, pack_weight and embedding with the kernels of
/// `isa`. Levels above avx512 use its kernels.
void fill_cpu_ops(KernelTable& table, CpuIsa isa);

/// The parts of fill_cpu_ops, one a source file.
void fill_cpu_norms(KernelTable& table, CpuIsa isa);
void fill_cpu_rope(KernelTable& table, CpuIsa isa);
void fill_cpu_attention(KernelTable& table, CpuIsa isa);
void fill_cpu_kv(KernelTable& table, CpuIsa isa);
void fill_cpu_rows(KernelTable& table);

}  // namespace triptych
