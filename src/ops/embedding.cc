#include "ops/embedding.h"

#include <fmt/format.h>

namespace triptych {

Status embedding(const OpContext& ctx, const PackedWeight& table, const int32_t* ids,
                 const View& out) {
  const int64_t n = out.shape[0];
  if (out.shape != Shape{n, table.k}) {
    return internal_error(
        fmt::format("embedding: rows of {} into {}", table.k, out.shape.to_string()));
  }
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] < 0 || ids[i] >= table.n) {
      return invalid_argument(
          fmt::format("token id {} at position {} is outside the vocabulary "
                      "of {}",
                      ids[i], i, table.n));
    }
  }
  ctx.kernels->embedding(
      {.table = table, .ids = ids, .n = n, .out = out.f32(), .ldo = out.strides[0]}, ctx.stream);
  return Status::ok();
}

}  // namespace triptych
