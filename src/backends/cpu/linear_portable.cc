// clang-format off: the lanes come before the kernels that are written over them
#include "backends/cpu/lanes_portable.h"
#include "backends/cpu/linear_epilogue.inl.h"
#include "backends/cpu/linear_micro.inl.h"
#include "backends/cpu/linear_pack_f32.inl.h"
// clang-format on

namespace triptych {
namespace {

template <typename Step>
LinearKernels make() {
  LinearKernels out;
  out.max_row_classes = 4;
  fill_row_class<Step, 16, 1, 1, 2>(out);
  fill_row_class<Step, 16, 2, 1>(out);
  fill_row_class<Step, 16, 3, 1>(out);
  fill_row_class<Step, 16, 4, 1>(out);
  out.pack = &pack_strip_f32;
  out.x_is_strip = true;
  out.epilogue = &linear_epilogue;
  return out;
}

int64_t peak(int64_t steps, float* sink) {
  Lanes acc[2] = {Lanes::splat(1.0f), Lanes::splat(2.0f)};
  const Lanes x = Lanes::splat(sink[0]);
  for (int64_t i = 0; i < steps; ++i) {
    for (Lanes& a : acc) a = fma(a, x, x);
  }
  (acc[0] + acc[1]).store(sink);
  return steps * 2 * 16 * 2;
}

}  // namespace

LinearKernels linear_portable(LinearFormat format) {
  switch (format) {
    case LinearFormat::kF32:
      return make<StepF32>();
    case LinearFormat::kF16:
      return make<StepF16>();
    default:
      return make<StepBF16Widened>();
  }
}

PeakLoop peak_loop_portable() { return &peak; }

}  // namespace triptych
