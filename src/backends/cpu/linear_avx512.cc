// clang-format off: the lanes come before the kernels that are written over them
#include "backends/cpu/lanes_avx512.h"
#include "backends/cpu/linear_avx512_rows.inl.h"
#include "backends/cpu/linear_epilogue.inl.h"
#include "backends/cpu/linear_pack_f32.inl.h"
#include "backends/cpu/linear_peak.inl.h"
// clang-format on

namespace triptych {
namespace {

template <typename Step>
LinearKernels make() {
  LinearKernels out;
  fill_avx512_rows<Step, 16>(out);
  out.pack = &pack_strip_f32;
  out.x_is_strip = true;
  out.epilogue = &linear_epilogue;
  return out;
}

}  // namespace

LinearKernels linear_avx512(LinearFormat format) {
  switch (format) {
    case LinearFormat::kF32:
      return make<StepF32>();
    case LinearFormat::kF16:
      return make<StepF16>();
    default:
      return make<StepBF16Widened>();
  }
}

PeakLoop peak_loop_avx512() { return &lanes_peak<12>; }

}  // namespace triptych
