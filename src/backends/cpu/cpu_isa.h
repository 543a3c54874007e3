#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace triptych {

/// Instruction set levels that CPU kernels are written for, lowest first. A level contains all
/// below it.
enum class CpuIsa : uint8_t {
  kPortable,    ///< plain C++ for x86-64-v2; for tests and machines without AVX2
  kAvx2,        ///< AVX2, FMA, F16C
  kAvx512,      ///< AVX-512 F, BW, DQ, VL
  kAvx512Bf16,  ///< and AVX512-BF16 (vdpbf16ps)
  kAmx,         ///< and AMX tiles with bf16 products
};

/// "portable", "avx2", "avx512", "avx512_bf16", "amx".
std::string_view cpu_isa_name(CpuIsa isa);

/// Whether CPU and operating system can run `isa`. For kAmx this asks the kernel for the right to
/// use tile registers; once granted, it holds for all threads of the process.
bool cpu_supports(CpuIsa isa);

/// Levels that this machine runs, lowest first.
std::vector<CpuIsa> available_cpu_isas();

/// Whether vdpbf16ps does fewer products a second than f32 multiply-adds: Intel's cores since
/// Sapphire Rapids. It matters where a virtual machine hides their AMX.
bool cpu_has_slow_bf16_pairs();

/// The fastest of `available`: the highest, but not avx512_bf16 with slow pairs.
CpuIsa fastest_cpu_isa(const std::vector<CpuIsa>& available, bool slow_bf16_pairs);

/// The level that a `cpu_isa` setting means: "auto" is the fastest available. kInvalidArgument
/// for an unknown name, kUnsupported for a level that this machine lacks.
Result<CpuIsa> resolve_cpu_isa(std::string_view setting);

/// AVX512-VNNI (8-bit dot products): reported by `triptych doctor`.
bool cpu_has_vnni();

/// The processor's own name, "unknown" when it gives none.
std::string cpu_brand();

}  // namespace triptych
