#include "ops/linear.h"

#include <fmt/format.h>

#include "base/checked.h"

namespace triptych {

size_t packed_weight_bytes(DType dtype, int64_t n, int64_t k) {
  const int64_t depth = dtype == DType::kBF16 ? round_up(k, 2) : k;
  return static_cast<size_t>(round_up(n, kPanelRows) * depth * dtype_bytes(dtype));
}

size_t linear_scratch_bytes(int64_t m, int64_t k, MatmulMode mode) {
  // Rows are padded to 64-byte chunks of K, and their number to whole AMX tiles of 16.
  if (mode == MatmulMode::kBF16) return static_cast<size_t>(round_up(m, 16) * round_up(k, 32) * 2);
  return static_cast<size_t>(round_up(m, 16) * round_up(k, 16) * 4);
}

Status linear(const OpContext& ctx, const View& x, const PackedWeight& w,
              const LinearOptions& options, const View& out) {
  const int64_t m = x.shape[0];
  const int64_t n_out = options.gated ? w.n / 2 : w.n;
  const View* residual = options.residual;
  if (x.shape.rank() != 2 || x.shape[1] != w.k || out.shape != Shape{m, n_out} ||
      (residual != nullptr && residual->shape != out.shape)) {
    return internal_error(fmt::format("linear: x {} with weight [{}, {}] into {}",
                                      x.shape.to_string(), w.n, w.k, out.shape.to_string()));
  }
  if (options.gated && w.n % (2 * kPanelRows) != 0) {
    return internal_error(fmt::format("linear: gated needs whole panels, N = {}", w.n));
  }
  if (m == 0) return Status::ok();
  const MatmulMode mode = w.dtype == DType::kBF16 ? ctx.matmul : MatmulMode::kF32;
  const ArenaScope scope(*ctx.scratch);
  TRIPTYCH_ASSIGN_OR_RETURN(void* scratch,
                            ctx.scratch->allocate_bytes(linear_scratch_bytes(m, w.k, mode)));
  ctx.kernels->linear({.x = x.f32(),
                       .ldx = x.strides[0],
                       .m = m,
                       .w = w,
                       .bias = options.bias,
                       .residual = residual != nullptr ? residual->f32() : nullptr,
                       .ld_residual = residual != nullptr ? residual->strides[0] : 0,
                       .out = out.f32(),
                       .ldo = out.strides[0],
                       .act = options.act,
                       .gated = options.gated,
                       .mode = mode,
                       .scratch = scratch},
                      ctx.stream);
  return Status::ok();
}

OpCost linear_cost(int64_t m, const PackedWeight& w) {
  const auto weight_bytes = static_cast<double>(packed_weight_bytes(w.dtype, w.n, w.k));
  return {2.0 * static_cast<double>(m) * static_cast<double>(w.n) * static_cast<double>(w.k),
          weight_bytes + 4.0 * static_cast<double>(m) * static_cast<double>(w.n + w.k)};
}

}  // namespace triptych
