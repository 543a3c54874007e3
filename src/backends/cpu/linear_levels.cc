#include "backends/cpu/linear_levels.h"

#include "backends/cpu/linear_driver.h"

namespace triptych {
namespace {

LinearKernels kernels_for(CpuIsa level, LinearFormat format) {
  if (format == LinearFormat::kBF16Native) {
    if (level == CpuIsa::kAmx) return linear_amx();
    if (level == CpuIsa::kAvx512Bf16) return linear_avx512_bf16();
    return {};
  }
  switch (level) {
    case CpuIsa::kPortable:
      return linear_portable(format);
    case CpuIsa::kAvx2:
      return linear_avx2(format);
    default:
      return linear_avx512(format);
  }
}

LinearFormat format_of(const LinearArgs& args) {
  switch (args.w.dtype) {
    case DType::kF16:
      return LinearFormat::kF16;
    case DType::kBF16:
      return args.mode == MatmulMode::kBF16 ? LinearFormat::kBF16Native
                                            : LinearFormat::kBF16Widened;
    default:
      return LinearFormat::kF32;
  }
}

/// A slot of the kernel table is a plain function, so each level has one of its own.
template <CpuIsa level>
void linear_at(const LinearArgs& args, const Stream& stream) {
  static const LinearKernels kKernels[kLinearFormats] = {
      kernels_for(level, LinearFormat::kF32), kernels_for(level, LinearFormat::kF16),
      kernels_for(level, LinearFormat::kBF16Widened),
      kernels_for(level, LinearFormat::kBF16Native)};
  run_linear(kKernels[static_cast<size_t>(format_of(args))], args, stream);
}

}  // namespace

void fill_cpu_linear(KernelTable& table, CpuIsa level) {
  switch (level) {
    case CpuIsa::kPortable:
      table.linear = &linear_at<CpuIsa::kPortable>;
      return;
    case CpuIsa::kAvx2:
      table.linear = &linear_at<CpuIsa::kAvx2>;
      return;
    case CpuIsa::kAvx512:
      table.linear = &linear_at<CpuIsa::kAvx512>;
      return;
    case CpuIsa::kAvx512Bf16:
      table.linear = &linear_at<CpuIsa::kAvx512Bf16>;
      return;
    case CpuIsa::kAmx:
      table.linear = &linear_at<CpuIsa::kAmx>;
      return;
  }
}

}  // namespace triptych
