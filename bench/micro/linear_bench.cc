// Matrix products of the CPU backend beside the machine's own limits: GFLOP/s of prefill shapes,
// GB/s of decode shapes with weights in memory and in cache, at every level of the machine.
//
//   linear_bench            all levels (TRIPTYCH_CPU_ISA=avx2 linear_bench: that one)
//   TRIPTYCH_THREADS=1 linear_bench
//
// Random operands; each figure is the median of repeated calls. "best" shows what the shortest
// call reached: far above the median means that the machine was busy with something else.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/ceilings.h"
#include "backends/cpu/cpu_backend.h"
#include "base/memory.h"
#include "base/settings.h"
#include "ops/linear.h"

namespace triptych {
namespace {

constexpr double kSecondsPerFigure = 0.12;
// Decode reads a different weight each time: together they exceed any cache.
constexpr int64_t kColdBytes = int64_t{256} << 20;
constexpr int64_t kReadMegabytes = 512;

struct ShapeCase {
  const char* what;
  int64_t m;
  int64_t n;
  int64_t k;
  bool gated;
  bool cold;  ///< weights come from memory
};

constexpr ShapeCase kShapes[] = {
    {"135M up+gate", 256, 3072, 576, true, false},  {"135M down", 256, 576, 1536, false, false},
    {"135M up+gate", 512, 3072, 576, true, false},  {"135M down", 512, 576, 1536, false, false},
    {"ViT-L fc1", 577, 4096, 1024, false, false},   {"ViT-L fc2", 577, 1024, 4096, false, false},
    {"1.1B square", 256, 2048, 2048, false, false}, {"1.1B up+gate", 512, 11264, 2048, true, false},
    {"1.1B down", 512, 2048, 5632, false, false},   {"135M qkv", 1, 960, 576, false, true},
    {"135M out", 1, 576, 576, false, true},         {"135M up+gate", 1, 3072, 576, true, true},
    {"135M down", 1, 576, 1536, false, true},       {"135M head", 1, 49152, 576, false, true},
    {"1.1B qkv", 1, 2560, 2048, false, true},       {"1.1B up+gate", 1, 11264, 2048, true, true},
    {"1.1B down", 1, 2048, 5632, false, true},      {"1.1B down", 4, 2048, 5632, false, true},
    {"1.1B down", 8, 2048, 5632, false, true},      {"1.1B down", 16, 2048, 5632, false, true},
    {"1.1B down", 32, 2048, 5632, false, true},     {"demo qkv", 1, 768, 256, false, false},
    {"demo up+gate", 1, 2048, 256, true, false},    {"demo down", 1, 256, 1024, false, false},
    {"demo block x16", 16, 2048, 256, true, false},
};

struct Format {
  const char* name;
  DType dtype;
  MatmulMode mode;
};

struct Figure {
  double median_s = 0;
  double best_s = 0;
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Fills memory with numbers of the given format, uniform in [-1, 1]; a short random sequence
/// repeats with a length that fits no shape.
void fill_random(std::byte* data, int64_t n_bytes, DType dtype) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<std::byte> period(static_cast<size_t>(65521 * 4));
  for (size_t i = 0; i + 4 <= period.size(); i += static_cast<size_t>(dtype_bytes(dtype))) {
    const float v = uniform(random);
    const uint16_t half = dtype == DType::kF16 ? f32_to_f16(v) : f32_to_bf16(v);
    const void* from = dtype == DType::kF32 ? static_cast<const void*>(&v) : &half;
    std::copy_n(static_cast<const std::byte*>(from), dtype_bytes(dtype), period.begin() + i);
  }
  for (int64_t at = 0; at < n_bytes;) {
    const int64_t n = std::min<int64_t>(n_bytes - at, static_cast<int64_t>(period.size()));
    std::copy_n(period.begin(), n, data + at);
    at += n;
  }
}

/// One (shape, format) at one level.
class LinearRun {
 public:
  LinearRun(const KernelTable& table, ThreadPool& pool, const ShapeCase& shape,
            const Format& format, PageBuffer& weights, PageBuffer& workspace)
      : table_(table), stream_{.pool = &pool} {
    weight_bytes_ = static_cast<int64_t>(packed_weight_bytes(format.dtype, shape.n, shape.k));
    // Each weight starts at a page of its own.
    stride_ = (weight_bytes_ + 4095) / 4096 * 4096;
    copies_ = shape.cold ? std::max<int64_t>(1, kColdBytes / stride_) : 1;
    base_ = weights.data();
    // Inputs and outputs are where the engine has them: in large pages, one after another.
    std::byte* at = workspace.data();
    const auto take = [&](size_t n_bytes) {
      std::byte* taken = at;
      at += (n_bytes + 63) / 64 * 64;
      return taken;
    };
    std::byte* x = take(static_cast<size_t>(shape.m * shape.k) * 4);
    fill_random(x, shape.m * shape.k * 4, DType::kF32);
    args_.x = reinterpret_cast<float*>(x);
    args_.ldx = shape.k;
    args_.m = shape.m;
    args_.w = {.dtype = format.dtype, .n = shape.n, .k = shape.k};
    args_.out = reinterpret_cast<float*>(take(static_cast<size_t>(shape.m * shape.n) * 4));
    args_.ldo = shape.gated ? shape.n / 2 : shape.n;
    args_.act = shape.gated ? Activation::kSilu : Activation::kNone;
    args_.gated = shape.gated;
    args_.mode = format.mode;
    args_.scratch = take(linear_scratch_bytes(shape.m, shape.k, format.mode));
  }

  int64_t weight_bytes() const { return weight_bytes_; }

  Figure measure() {
    std::vector<double> seconds;
    call();
    const double stop = seconds_now() + kSecondsPerFigure;
    // Short calls are timed together, so that the clock does not count.
    const int batch = weight_bytes_ < (4 << 20) && args_.m < 64 ? 8 : 1;
    while (seconds.size() < 5 || seconds_now() < stop) {
      const double begin = seconds_now();
      for (int i = 0; i < batch; ++i) call();
      seconds.push_back((seconds_now() - begin) / batch);
    }
    std::sort(seconds.begin(), seconds.end());
    return {seconds[seconds.size() / 2], seconds.front()};
  }

 private:
  void call() {
    args_.w.data = base_ + next_ * stride_;
    next_ = (next_ + 1) % copies_;
    table_.linear(args_, stream_);
  }

  const KernelTable& table_;
  Stream stream_;
  std::byte* base_ = nullptr;
  int64_t weight_bytes_ = 0;
  int64_t stride_ = 0;
  int64_t copies_ = 1;
  int64_t next_ = 0;
  LinearArgs args_{};
};

/// Geometric mean and least of some fractions.
struct Fractions {
  double log_sum = 0;
  double least = 1e9;
  int n = 0;

  void add(double f) {
    log_sum += std::log(f);
    least = std::min(least, f);
    ++n;
  }
  double mean() const { return n == 0 ? 0 : std::exp(log_sum / n); }
};

struct LevelResult {
  Fractions gemm;
  Fractions decode;
};

/// Prints the table of one level; the fractions are those of its 16-bit weights.
LevelResult run_level(CpuIsa level, ThreadPool& pool, PageBuffer& weights, PageBuffer& workspace) {
  const KernelTable table = make_cpu_kernels(level).value();
  std::vector<Format> formats = {{"f32", DType::kF32, MatmulMode::kF32},
                                 {"f16", DType::kF16, MatmulMode::kF32},
                                 {"bf16 (f32 products)", DType::kBF16, MatmulMode::kF32}};
  if (cpu_has_bf16_matmul(level)) formats.push_back({"bf16", DType::kBF16, MatmulMode::kBF16});
  fmt::print("\n{}\n", cpu_isa_name(level));
  LevelResult result;
  for (const Format& format : formats) {
    fill_random(weights.data(), static_cast<int64_t>(weights.size()), format.dtype);
    // A machine shared with others' work changes from minute to minute: the limits are taken beside
    // what is compared with them.
    const CpuCeilings limits = measure_arithmetic(level, pool);
    const double bandwidth = measure_read_bandwidth(pool, kReadMegabytes).value();
    const bool bf16_products = format.mode == MatmulMode::kBF16;
    const double peak = bf16_products ? limits.bf16_flops : limits.f32_flops;
    fmt::print("registers {:.0f} GFLOP/s, read {:.1f} GB/s\n", peak * 1e-9, bandwidth * 1e-9);
    fmt::print("{:<20} {:<15} {:>4} {:>6} {:>5} {:>9} {:>9} {:>8} {:>8} {:>8}\n", format.name,
               "shape", "M", "N", "K", "us", "GFLOP/s", "GB/s", "of limit", "best");
    for (const ShapeCase& shape : kShapes) {
      LinearRun run(table, pool, shape, format, weights, workspace);
      const Figure figure = run.measure();
      const double flops = 2.0 * static_cast<double>(shape.m * shape.n * shape.k);
      const auto bytes = static_cast<double>(run.weight_bytes());
      const bool is_gemm = shape.m >= 64;
      const double work = is_gemm ? flops / peak : bytes / bandwidth;
      const double fraction = work / figure.median_s;
      fmt::print("{:<20} {:<15} {:>4} {:>6} {:>5} {:>9.1f} {:>9.1f} {:>8.2f} {:>8} {:>8.2f}\n", "",
                 shape.what, shape.m, shape.n, shape.k, figure.median_s * 1e6,
                 flops / figure.median_s * 1e-9, bytes / figure.median_s * 1e-9,
                 is_gemm || shape.cold ? fmt::format("{:.2f}", fraction) : "cache",
                 work / figure.best_s);
      const bool counts = &format == &formats.back();
      if (counts && is_gemm) result.gemm.add(fraction);
      if (counts && shape.cold && shape.m == 1) result.decode.add(fraction);
    }
  }
  return result;
}

int run_bench() {
  const Settings settings = Settings::from_environment();
  const Result<int> threads = settings.thread_count();
  const Result<CpuIsa> level = resolve_cpu_isa(settings.cpu_isa);
  if (!threads.is_ok() || !level.is_ok()) {
    fmt::print(stderr, "{}{}\n", threads.status().message(), level.status().message());
    return exit_code(StatusCode::kInvalidArgument);
  }
  ThreadPool pool(threads.value());
  auto weights = PageBuffer::allocate(kColdBytes, true);
  auto workspace = PageBuffer::allocate(size_t{64} << 20, true);
  const Result<double> bandwidth = measure_read_bandwidth(pool, kReadMegabytes);
  if (!weights.is_ok() || !workspace.is_ok() || !bandwidth.is_ok()) {
    fmt::print(stderr, "not enough memory: 1 GiB is needed\n");
    return exit_code(StatusCode::kResourceExhausted);
  }
  fmt::print("{}, {} threads\n", cpu_brand(), threads.value());
  std::string json;
  for (const CpuIsa isa : available_cpu_isas()) {
    if (settings.cpu_isa == "auto" ? isa == CpuIsa::kPortable : isa != level.value()) continue;
    const LevelResult r = run_level(isa, pool, weights.value(), workspace.value());
    const auto add = [&](const std::string& suffix) {
      json += fmt::format(
          "{}\"gemm_peak_fraction{}\": {:.3f}, \"gemm_peak_fraction_least{}\": {:.3f}, "
          "\"decode_bandwidth_fraction{}\": {:.3f}, \"decode_bandwidth_fraction_least{}\": {:.3f}",
          json.empty() ? "" : ", ", suffix, r.gemm.mean(), suffix, r.gemm.least, suffix,
          r.decode.mean(), suffix, r.decode.least);
    };
    add("_" + std::string(cpu_isa_name(isa)));
    if (isa == level.value()) add("");
  }
  fmt::print("RESULT {{\"level\": \"{}\", \"threads\": {}, \"read_gb_per_s\": {:.1f}, {}}}\n",
             cpu_isa_name(level.value()), threads.value(), bandwidth.value() * 1e-9, json);
  return 0;
}

}  // namespace
}  // namespace triptych

int main() { return triptych::run_bench(); }
