#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"
#include "weights/gguf.h"

namespace triptych {

/// What rows of a GGUF type become: floats stay as they are, quantised blocks become bf16.
/// Only for types that ggml_type_is_read.
DType gguf_row_dtype(GgmlType type);

/// Writes `n` consecutive elements of a row, starting at a block boundary, to `out` in
/// gguf_row_dtype(type). `n` is a multiple of the type's block. Quants are widened to f32 exactly
/// as ggml's dequantize_row_* do and then rounded to nearest bf16: at most 2^-9 of a value, where
/// half a quantisation step is 2^-8 of a block's largest value for Q8_0 and 2^-4 for Q4.
void gguf_convert(GgmlType type, const std::byte* blocks, int64_t n, void* out);

}  // namespace triptych
