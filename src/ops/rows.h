#pragma once

#include "ops/op_context.h"

namespace triptych {

/// dst[dst_index[i]] = src[src_index[i]] for i in [0, n), rows of d floats; a null index is the
/// identity. Merges media rows into embeddings and applies keep-indices.
struct GatherRowsArgs {
  const float* src;
  int64_t ld_src;
  const int32_t* src_index;
  float* dst;
  int64_t ld_dst;
  const int32_t* dst_index;
  int64_t n;
  int64_t d;
};

/// Indices must lie inside the views (kInternal otherwise).
Status gather_rows(const OpContext& ctx, const View& src, const int32_t* src_index, int64_t n,
                   const View& dst, const int32_t* dst_index);

/// Cuts pictures [C, H, W] f32 into rows of one patch each, in reading order; a row holds
/// (C, patch, patch), the order of a convolution's weight, so that patch embedding is a Linear.
struct PatchifyArgs {
  const float* pixels;  ///< [C, H, W]
  int64_t channels;
  int64_t height;
  int64_t width;
  int64_t patch;  ///< rows and columns beyond a whole patch are left out, as a convolution does
  float* out;     ///< [(H/patch) * (W/patch), C * patch * patch]
};

Status patchify(const OpContext& ctx, const View& pixels, int64_t patch, const View& out);

}  // namespace triptych
