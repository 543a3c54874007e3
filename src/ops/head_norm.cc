#include "ops/head_norm.h"

#include <fmt/format.h>

#include "ops/norm.h"

namespace triptych {

Status head_norm(const OpContext& ctx, const HeadNormArgs& args) {
  if (args.head_dim < 1 || args.heads < 0 || args.ldx < args.heads * args.head_dim) {
    return internal_error(fmt::format("head_norm: {} heads of {} in rows {} apart", args.heads,
                                      args.head_dim, args.ldx));
  }
  ctx.kernels->head_norm(args, ctx.stream);
  return Status::ok();
}

OpCost head_norm_cost(int64_t n, int64_t heads, int64_t head_dim) {
  return norm_cost(n * heads, head_dim);
}

}  // namespace triptych
