// clang-format off: the lanes come before the kernels that are written over them
#include "backends/cpu/lanes_avx2.h"
#include "backends/cpu/linear_epilogue.inl.h"
#include "backends/cpu/linear_micro.inl.h"
#include "backends/cpu/linear_pack_f32.inl.h"
#include "backends/cpu/linear_peak.inl.h"
// clang-format on

namespace triptych {
namespace {

// Sixteen registers, two to a panel: six rows of one panel leave four for weights and x.
template <typename Step>
LinearKernels make() {
  LinearKernels out;
  out.max_row_classes = 6;
  fill_row_class<Step, 16, 1, 1, 2, 3, 4>(out);
  fill_row_class<Step, 16, 2, 1, 2, 3>(out);
  fill_row_class<Step, 16, 3, 1, 2>(out);
  fill_row_class<Step, 16, 4, 1>(out);
  fill_row_class<Step, 16, 5, 1>(out);
  fill_row_class<Step, 16, 6, 1>(out);
  out.gemm_panels = 4;
  out.pack = &pack_strip_f32;
  out.x_is_strip = true;
  out.epilogue = &linear_epilogue;
  return out;
}

}  // namespace

LinearKernels linear_avx2(LinearFormat format) {
  switch (format) {
    case LinearFormat::kF32:
      return make<StepF32>();
    case LinearFormat::kF16:
      return make<StepF16>();
    default:
      return make<StepBF16Widened>();
  }
}

PeakLoop peak_loop_avx2() { return &lanes_peak<6>; }

}  // namespace triptych
