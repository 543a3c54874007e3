#pragma once

#include "core/stream.h"

namespace triptych {

#define TRIPTYCH_OP(name, Args) struct Args;
#include "ops/op_list.def"
#undef TRIPTYCH_OP

/// The operators of a backend as plain function pointers. Kernels take raw pointers and plain
/// structs, never allocate, never synchronise a device and never branch on device data; shapes
/// have been checked by the operator's wrapper (ops/<op>.h) before they are called.
struct KernelTable {
  const char* backend = "";
  const char* level = "";  ///< for example "avx512_bf16"
#define TRIPTYCH_OP(name, Args) void (*name)(const Args& args, const Stream& stream) = nullptr;
#include "ops/op_list.def"
#undef TRIPTYCH_OP
};

/// Name of the first operator whose slot is null, or null when the table is complete. Checked at
/// load, so that a missing kernel is never found in the middle of a request.
inline const char* first_missing_op(const KernelTable& table) {
#define TRIPTYCH_OP(name, Args) \
  if (table.name == nullptr) return #name;
#include "ops/op_list.def"
#undef TRIPTYCH_OP
  return nullptr;
}

}  // namespace triptych
