#include "backends/cpu/ceilings.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/linear_isa.h"
#include "backends/cpu/linear_levels.h"
#include "backends/cpu/pack_weight.h"
#include "base/memory.h"

namespace triptych {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// FLOP/s of a register loop on all threads: the best of a few runs of about 20 ms.
double peak_of(PeakLoop loop, ThreadPool& pool) {
  constexpr int kRuns = 4;
  constexpr double kRunSeconds = 0.02;
  int64_t steps = 20000;
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::atomic<int64_t> flops{0};
    const double begin = seconds_now();
    pool.run([&](int) {
      alignas(64) float sink[16];
      std::fill_n(sink, 16, 0.5f);
      flops.fetch_add(loop(steps, sink), std::memory_order_relaxed);
    });
    const double taken = seconds_now() - begin;
    if (run > 0) best = std::max(best, static_cast<double>(flops.load()) / taken);
    steps = std::max<int64_t>(
        1, static_cast<int64_t>(static_cast<double>(steps) * kRunSeconds / std::max(taken, 1e-6)));
  }
  return best;
}

PeakLoop f32_loop(CpuIsa level) {
  if (level == CpuIsa::kPortable) return peak_loop_portable();
  return level == CpuIsa::kAvx2 ? peak_loop_avx2() : peak_loop_avx512();
}

/// FLOP/s of a product of 256 rows: the best of a few runs.
double gemm_of(CpuIsa level, DType dtype, MatmulMode mode, ThreadPool& pool) {
  constexpr int64_t kM = 256;
  constexpr int64_t kSize = 1024;
  constexpr int kRuns = 6;
  KernelTable table;
  fill_cpu_linear(table, level);
  const Stream stream{.pool = &pool};
  const size_t scratch_bytes = linear_scratch_bytes(kM, kSize, mode);
  std::vector<float> values(kM * kSize);
  for (size_t i = 0; i < values.size(); ++i) {  // neither zero nor regular
    values[i] = static_cast<float>(i * 2654435761u % 1000) * 1e-3f - 0.5f;
  }
  auto weight = PageBuffer::allocate(packed_weight_bytes(dtype, kSize, kSize), true);
  auto scratch = PageBuffer::allocate(scratch_bytes, true);
  if (!weight.is_ok() || !scratch.is_ok()) return 0;
  const int64_t n_values = static_cast<int64_t>(weight->size()) / dtype_bytes(dtype);
  for (int64_t i = 0; i < n_values; ++i) {
    const float v = values[static_cast<size_t>(i) % values.size()];
    const uint16_t half = f32_to_bf16(v);
    std::byte* to = weight->data() + i * dtype_bytes(dtype);
    if (dtype == DType::kBF16) {
      std::memcpy(to, &half, sizeof(half));
    } else {
      std::memcpy(to, &v, sizeof(v));
    }
  }
  std::vector<float> out(kM * kSize);
  LinearArgs args{};
  args.x = values.data();
  args.ldx = kSize;
  args.m = kM;
  args.w = {.dtype = dtype, .n = kSize, .k = kSize, .data = weight->data()};
  args.out = out.data();
  args.ldo = kSize;
  args.mode = mode;
  args.scratch = scratch->data();
  double best = 1e30;
  for (int run = 0; run < kRuns; ++run) {
    const double begin = seconds_now();
    table.linear(args, stream);
    best = std::min(best, seconds_now() - begin);
  }
  return 2.0 * kM * kSize * kSize / best;
}

/// Brings in every cache line once (a word of each), from several places at a time, so that the
/// memory and not the core sets the pace.
uint64_t read_all(const std::byte* data, int64_t n_bytes) {
  constexpr int64_t kLine = 64;
  constexpr int64_t kAhead = 1024;
  constexpr int64_t kStreams = 4;
  const int64_t stream_bytes = n_bytes / kStreams / kLine * kLine;
  uint64_t sums[kStreams] = {};
  for (int64_t i = 0; i < stream_bytes; i += kLine) {
    for (int64_t s = 0; s < kStreams; ++s) {
      const std::byte* line = data + s * stream_bytes + i;
      const auto ahead = reinterpret_cast<uintptr_t>(line) + kAhead;
      __builtin_prefetch(reinterpret_cast<const void*>(ahead), 0, 3);
      uint64_t word = 0;
      std::memcpy(&word, line, sizeof(word));
      sums[s] ^= word;
    }
  }
  return sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
}

}  // namespace

CpuCeilings measure_arithmetic(CpuIsa level, ThreadPool& pool) {
  CpuCeilings out;
  out.f32_flops = peak_of(f32_loop(level), pool);
  out.f32_gemm_flops = gemm_of(level, DType::kF32, MatmulMode::kF32, pool);
  if (cpu_has_bf16_matmul(level)) {
    out.bf16_flops =
        peak_of(level == CpuIsa::kAmx ? peak_loop_amx() : peak_loop_avx512_bf16(), pool);
    out.bf16_gemm_flops = gemm_of(level, DType::kBF16, MatmulMode::kBF16, pool);
  }
  return out;
}

Result<std::vector<double>> measure_reads(ThreadPool& pool, int64_t megabytes, int n_passes) {
  TRIPTYCH_ASSIGN_OR_RETURN(PageBuffer buffer,
                            PageBuffer::allocate(static_cast<size_t>(megabytes) << 20, true));
  const auto size = static_cast<int64_t>(buffer.size());
  const int64_t part = size / pool.size() / 64 * 64;
  // Each thread touches the part that it will read, so that the memory is near it.
  pool.run([&](int worker) {
    std::memset(buffer.data() + worker * part, 1 + worker, static_cast<size_t>(part));
  });
  std::vector<double> bytes_per_s;
  std::atomic<uint64_t> sink{0};
  for (int pass = 0; pass < n_passes; ++pass) {
    const double begin = seconds_now();
    pool.run([&](int worker) {
      sink.fetch_xor(read_all(buffer.data() + worker * part, part), std::memory_order_relaxed);
    });
    bytes_per_s.push_back(static_cast<double>(part * pool.size()) / (seconds_now() - begin));
  }
  return bytes_per_s;
}

Result<double> measure_read_bandwidth(ThreadPool& pool, int64_t megabytes) {
  constexpr int kPasses = 7;
  TRIPTYCH_ASSIGN_OR_RETURN(std::vector<double> found, measure_reads(pool, megabytes, kPasses));
  std::nth_element(found.begin(), found.begin() + kPasses / 2, found.end());
  return found[kPasses / 2];
}

CpuCeilings measure_cpu_ceilings(CpuIsa level, ThreadPool& pool) {
  constexpr int64_t kMegabytes = 512;
  CpuCeilings out = measure_arithmetic(level, pool);
  if (available_memory_bytes() >> 20 > 2 * kMegabytes) {
    const Result<double> read = measure_read_bandwidth(pool, kMegabytes);
    if (read.is_ok()) out.read_bytes = read.value();
  }
  return out;
}

}  // namespace triptych
