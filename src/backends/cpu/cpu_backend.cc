#include "backends/cpu/cpu_backend.h"

#include <fmt/format.h>

#include "backends/cpu/ceilings.h"
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

namespace {

/// Backend::measure_ceilings is a plain function, so each level has one of its own.
template <CpuIsa level>
Ceilings ceilings_at(ThreadPool& pool) {
  const CpuCeilings found = measure_cpu_ceilings(level, pool);
  return {.f32_flops = found.f32_flops,
          .bf16_flops = found.bf16_flops,
          .read_bytes_per_s = found.read_bytes};
}

Ceilings (*ceilings_of(CpuIsa level))(ThreadPool&) {
  switch (level) {
    case CpuIsa::kPortable:
      return &ceilings_at<CpuIsa::kPortable>;
    case CpuIsa::kAvx2:
      return &ceilings_at<CpuIsa::kAvx2>;
    case CpuIsa::kAvx512:
      return &ceilings_at<CpuIsa::kAvx512>;
    case CpuIsa::kAvx512Bf16:
      return &ceilings_at<CpuIsa::kAvx512Bf16>;
    case CpuIsa::kAmx:
      break;
  }
  return &ceilings_at<CpuIsa::kAmx>;
}

void describe(CpuIsa level, Backend& out) {
  std::string names;
  const std::vector<CpuIsa> available = available_cpu_isas();
  for (const CpuIsa isa : available) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", cpu_isa_name(isa));
  }
  const CpuIsa best = fastest_cpu_isa(available, cpu_has_slow_bf16_pairs());
  out.description = fmt::format("CPU {}, {}", cpu_isa_name(level), cpu_brand());
  out.level = cpu_isa_name(level);
  out.facts = {
      fmt::format("CPU: {}", cpu_brand()),
      fmt::format("CPU level: {} (available: {})", cpu_isa_name(level), names),
      fmt::format("bf16 products: {}", cpu_has_bf16_matmul(level) ? "native" : "widened to f32"),
      fmt::format("AVX512-VNNI: {}", cpu_has_vnni() ? "yes" : "no")};
  if (level < best) {
    out.advice.push_back(fmt::format("TRIPTYCH_CPU_ISA holds this machine at {}; it has {}",
                                     cpu_isa_name(level), cpu_isa_name(best)));
  }
  if (best == CpuIsa::kPortable) {
    out.advice.push_back(
        "this CPU (or virtual machine) shows no AVX2: kernels run several times "
        "faster with it");
  }
}

}  // namespace

Result<Backend> make_cpu_backend(const Settings& settings) {
  TRIPTYCH_ASSIGN_OR_RETURN(const CpuIsa level, resolve_cpu_isa(settings.cpu_isa));
  Backend out;
  TRIPTYCH_ASSIGN_OR_RETURN(out.kernels, make_cpu_kernels(level));
  out.native_bf16_matmul = cpu_has_bf16_matmul(level);
  out.measure_ceilings = ceilings_of(level);
  describe(level, out);
  return out;
}

}  // namespace triptych
