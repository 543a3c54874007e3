#pragma once

#include "backends/cpu/linear_micro.inl.h"

namespace triptych {
namespace {

/// The kernel sizes of all AVX-512 formats: of 32 registers, at most 24 hold sums. Few rows take
/// many panels, so that enough chains and memory streams are under way.
template <typename Step, int kChunk>
void fill_avx512_rows(LinearKernels& out) {
  out.max_row_classes = 12;
  fill_row_class<Step, kChunk, 1, 1, 2, 3, 4>(out);
  fill_row_class<Step, kChunk, 2, 1, 2, 3, 4>(out);
  fill_row_class<Step, kChunk, 3, 1, 2, 4>(out);
  fill_row_class<Step, kChunk, 4, 1, 2, 4>(out);
  fill_row_class<Step, kChunk, 5, 1, 2, 4>(out);
  fill_row_class<Step, kChunk, 6, 1, 2, 4>(out);
  fill_row_class<Step, kChunk, 7, 1, 2>(out);
  fill_row_class<Step, kChunk, 8, 1, 2>(out);
  fill_row_class<Step, kChunk, 9, 1, 2>(out);
  fill_row_class<Step, kChunk, 10, 1, 2>(out);
  fill_row_class<Step, kChunk, 11, 1, 2>(out);
  fill_row_class<Step, kChunk, 12, 1, 2>(out);
  out.gemm_panels = 4;
}

}  // namespace
}  // namespace triptych
