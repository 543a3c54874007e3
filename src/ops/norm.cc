#include "ops/norm.h"

#include <fmt/format.h>

namespace triptych {
namespace {

bool is_f32_rows(const View& v) {
  return v.dtype == DType::kF32 && v.shape.rank() == 2 && (v.strides[1] == 1 || v.shape[1] <= 1);
}

Status check_rows(const char* op, const View& x, const View& out) {
  if (is_f32_rows(x) && is_f32_rows(out) && x.shape == out.shape) return Status::ok();
  return internal_error(fmt::format("{}: {} {} into {} {}, expected rows of f32", op,
                                    dtype_name(x.dtype), x.shape.to_string(), dtype_name(out.dtype),
                                    out.shape.to_string()));
}

}  // namespace

Status rms_norm(const OpContext& ctx, const View& x, const float* weight, float eps,
                const View& out) {
  TRIPTYCH_RETURN_IF_ERROR(check_rows("rms_norm", x, out));
  ctx.kernels->rms_norm({.x = x.f32(),
                         .ldx = x.strides[0],
                         .n = x.shape[0],
                         .d = x.shape[1],
                         .weight = weight,
                         .eps = eps,
                         .out = out.f32(),
                         .ldo = out.strides[0]},
                        ctx.stream);
  return Status::ok();
}

Status layer_norm(const OpContext& ctx, const View& x, const float* weight, const float* bias,
                  float eps, const View& out) {
  TRIPTYCH_RETURN_IF_ERROR(check_rows("layer_norm", x, out));
  ctx.kernels->layer_norm({.x = x.f32(),
                           .ldx = x.strides[0],
                           .n = x.shape[0],
                           .d = x.shape[1],
                           .weight = weight,
                           .bias = bias,
                           .eps = eps,
                           .out = out.f32(),
                           .ldo = out.strides[0]},
                          ctx.stream);
  return Status::ok();
}

OpCost norm_cost(int64_t n, int64_t d) {
  const auto elements = static_cast<double>(n) * static_cast<double>(d);
  return {6.0 * elements, 8.0 * elements};
}

}  // namespace triptych
