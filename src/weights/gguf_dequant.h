#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"
#include "weights/gguf.h"

namespace triptych {

/// What rows of a GGUF type become: floats stay as they are, quantised blocks become `quants`
/// (kF32, kBF16 or kF16). Only for types that ggml_type_is_read.
DType gguf_row_dtype(GgmlType type, DType quants);

/// Writes `n` consecutive elements of a row, starting at a block boundary, to `out` as `dtype`,
/// which is gguf_row_dtype of the type. `n` is a multiple of the type's block. Quants are widened
/// to f32 as ggml's dequantize_row_* do, to the bit, and then rounded to nearest: bf16 loses at
/// most 2^-9 of a value, f16 2^-12, where half a quantisation step is 2^-8 of a block's largest
/// value for Q8_0 and about 2^-5 of its range for Q4.
void gguf_convert(GgmlType type, const std::byte* blocks, int64_t n, DType dtype, void* out);

}  // namespace triptych
