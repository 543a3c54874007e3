#pragma once

#include <array>
#include <cstdint>

#include "media/image/resize_weights.h"

namespace triptych {

/// Bytes behind the end of every planar row that kernels may read (never use) or write.
inline constexpr int64_t kRowPadding = 64;

/// The R, G and B bytes of one row in three places, each with kRowPadding bytes behind its end.
using PlanarRow = std::array<uint8_t*, 3>;
using ConstPlanarRow = std::array<const uint8_t*, 3>;

/// Rows that horizontal_rows takes at once: weights are loaded once for all of them.
inline constexpr int64_t kRowsAtOnce = 4;

/// `n` RGB pixels to planes.
void split_channels(const uint8_t* rgb, int64_t n, const PlanarRow& out);

/// Planes to `n` RGB pixels.
void join_channels(const ConstPlanarRow& in, int64_t n, uint8_t* rgb);

/// The horizontal pass on `n_rows` (1..kRowsAtOnce) rows; out rows have axis.n_out() samples.
void horizontal_rows(const ConstPlanarRow* in, int64_t n_rows, const AxisWeights& axis,
                     const PlanarRow* out);

/// Weighted sum of `n_rows` rows of bytes, `stride` bytes apart: one output row of the vertical
/// pass. Reads and writes up to kRowPadding bytes behind `n_bytes`.
void vertical_row(const uint8_t* rows, int64_t stride, const int32_t* weights, int64_t n_rows,
                  int64_t n_bytes, uint8_t* out);

/// Chroma row of a 4:2:0 picture at full width, libjpeg's triangle filter: `near` is the chroma row
/// that covers the picture row, `far` the next one on its other side. `n` samples give 2 n.
/// `sums` is scratch of n + kRowPadding values.
void upsample_h2v2(const uint8_t* near, const uint8_t* far, int64_t n, uint16_t* sums,
                   uint8_t* out);

/// The same for 4:2:2, where a chroma row covers one picture row.
void upsample_h2v1(const uint8_t* row, int64_t n, uint16_t* sums, uint8_t* out);

/// JFIF YCbCr to RGB as libjpeg computes it: 16 fractional bits, rounded.
void ycc_to_rgb(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, int64_t n,
                const PlanarRow& out);

/// Name of the SIMD level in use ("AVX2", "AVX3", ...).
const char* row_kernels_level();

}  // namespace triptych
