#include "ops/rope.h"

#include <fmt/format.h>

namespace triptych {

Status rope(const OpContext& ctx, const RopeArgs& args) {
  if (args.rot < 0 || args.rot % 2 != 0 || args.rot > args.head_dim) {
    return internal_error(
        fmt::format("rope: {} rotated elements in heads of {}", args.rot, args.head_dim));
  }
  ctx.kernels->rope(args, ctx.stream);
  return Status::ok();
}

}  // namespace triptych
