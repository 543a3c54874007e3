#pragma once

#include <vector>

#include "backends/cpu/cpu_isa.h"
#include "base/status.h"
#include "base/thread_pool.h"

namespace triptych {

/// What this machine can do at most, measured with all threads of a pool. `triptych bench` and
/// `triptych doctor` state speeds as fractions of these.
struct CpuCeilings {
  double f32_flops = 0;       ///< multiply-adds in registers, FLOP/s
  double bf16_flops = 0;      ///< bf16 products with f32 sums, FLOP/s; 0 where not native
  double f32_gemm_flops = 0;  ///< our own product of 256 rows, FLOP/s
  double bf16_gemm_flops = 0;
  double read_bytes = 0;  ///< sequential read from memory, bytes/s; 0 when there was too little
};

/// The arithmetic of CpuCeilings alone; about 0.3 s.
CpuCeilings measure_arithmetic(CpuIsa level, ThreadPool& pool);

/// Bytes a second that all threads read from `megabytes` of memory in huge pages with prefetching,
/// in each of `n_passes`. kResourceExhausted when the memory is not there.
Result<std::vector<double>> measure_reads(ThreadPool& pool, int64_t megabytes, int n_passes);

/// The median of several passes. The size must exceed every cache.
Result<double> measure_read_bandwidth(ThreadPool& pool, int64_t megabytes);

/// Everything, with 512 MiB for the read; about one second.
CpuCeilings measure_cpu_ceilings(CpuIsa level, ThreadPool& pool);

}  // namespace triptych
