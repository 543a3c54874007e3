#include "ops/rows.h"

#include <fmt/format.h>

namespace triptych {

Status gather_rows(const OpContext& ctx, const View& src, const int32_t* src_index, int64_t n,
                   const View& dst, const int32_t* dst_index) {
  if (src.shape.rank() != 2 || dst.shape.rank() != 2 || src.shape[1] != dst.shape[1] ||
      src.dtype != DType::kF32 || dst.dtype != DType::kF32) {
    return internal_error(
        fmt::format("gather_rows: {} into {}", src.shape.to_string(), dst.shape.to_string()));
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t from = src_index != nullptr ? src_index[i] : i;
    const int64_t to = dst_index != nullptr ? dst_index[i] : i;
    if (from < 0 || from >= src.shape[0] || to < 0 || to >= dst.shape[0]) {
      return internal_error(fmt::format("gather_rows: row {} of {} into row {} of {}", from,
                                        src.shape[0], to, dst.shape[0]));
    }
  }
  ctx.kernels->gather_rows({.src = src.f32(),
                            .ld_src = src.strides[0],
                            .src_index = src_index,
                            .dst = dst.f32(),
                            .ld_dst = dst.strides[0],
                            .dst_index = dst_index,
                            .n = n,
                            .d = src.shape[1]},
                           ctx.stream);
  return Status::ok();
}

Status patchify(const OpContext& ctx, const View& pixels, int64_t patch, const View& out) {
  const Shape& s = pixels.shape;
  if (s.rank() != 3 || patch <= 0 || pixels.dtype != DType::kF32 || !pixels.is_dense() ||
      !out.is_dense() ||
      out.shape != Shape{(s[1] / patch) * (s[2] / patch), s[0] * patch * patch}) {
    return internal_error(fmt::format("patchify: {} in patches of {} into {}", s.to_string(), patch,
                                      out.shape.to_string()));
  }
  ctx.kernels->patchify({.pixels = pixels.f32(),
                         .channels = s[0],
                         .height = s[1],
                         .width = s[2],
                         .patch = patch,
                         .out = out.f32()},
                        ctx.stream);
  return Status::ok();
}

}  // namespace triptych
