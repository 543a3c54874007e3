#include "backends/cpu/cpu_backend.h"

#include <fmt/format.h>

#include "backends/cpu/cpu_ops.h"
#include "backends/cpu/embedding_panels.h"
#include "backends/cpu/linear_levels.h"
#include "backends/cpu/pack_weight.h"

namespace triptych {

bool cpu_has_bf16_matmul(CpuIsa level) { return level >= CpuIsa::kAvx512Bf16; }

Result<KernelTable> make_cpu_kernels(CpuIsa level) {
  if (!cpu_supports(level)) {
    return unsupported(fmt::format("this machine has no {}", cpu_isa_name(level)));
  }
  KernelTable table;
  table.backend = "cpu";
  table.level = cpu_isa_name(level).data();
  fill_cpu_linear(table, level);
  table.pack_weight = &pack_weight_panels;
  table.embedding = &embedding_panels;
  fill_cpu_ops(table, level);
  if (const char* missing = first_missing_op(table)) {
    return internal_error(fmt::format("the CPU backend has no kernel for '{}'", missing));
  }
  return table;
}

Result<Backend> make_cpu_backend(const Settings& settings) {
  TRIPTYCH_ASSIGN_OR_RETURN(const CpuIsa level, resolve_cpu_isa(settings.cpu_isa));
  Backend out;
  TRIPTYCH_ASSIGN_OR_RETURN(out.kernels, make_cpu_kernels(level));
  out.native_bf16_matmul = cpu_has_bf16_matmul(level);
  out.description = fmt::format("CPU {}, {}", cpu_isa_name(level), cpu_brand());
  return out;
}

}  // namespace triptych
