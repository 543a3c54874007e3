#include "backends/cpu/cpu_ops.h"

namespace triptych {

void fill_cpu_ops(KernelTable& table, CpuIsa isa) {
  fill_cpu_norms(table, isa);
  fill_cpu_rope(table, isa);
  fill_cpu_attention(table, isa);
  fill_cpu_kv(table, isa);
  fill_cpu_rows(table);
}

}  // namespace triptych
