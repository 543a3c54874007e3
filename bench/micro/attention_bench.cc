// Attention of the CPU backend beside the machine's f32 peak: towers, prefill and decode, at every
// level of the machine.
//
//   attention_bench                          every level but portable
//   TRIPTYCH_CPU_ISA=avx2 attention_bench    that level
//   TRIPTYCH_THREADS=1 attention_bench
//
// Random operands; each figure is the shortest of repeated calls, so that other work on the machine
// counts as little as possible. Decode is stated in bytes of keys and values a second.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/ceilings.h"
#include "backends/cpu/cpu_backend.h"
#include "base/memory.h"
#include "base/settings.h"
#include "ops/attention.h"

namespace triptych {
namespace {

constexpr double kSecondsPerFigure = 0.3;

struct TowerCase {
  const char* key;
  const char* what;
  int64_t n_heads;
  int64_t head_dim;
  int64_t n_rows;
};
constexpr TowerCase kTowers[] = {
    {"vit_l", "ViT-L/14-336", 16, 64, 577},   {"demo", "demo tower", 4, 64, 576},
    {"so400m", "SigLIP so400m", 16, 72, 729}, {"head80", "heads of 80", 16, 80, 1024},
    {"vit_b", "ViT-B/16", 12, 64, 197},
};

struct DecoderCase {
  const char* key;
  const char* what;
  int64_t n_heads;
  int64_t n_kv_heads;
  int64_t head_dim;
  int64_t n_rows;
  int64_t kv_len;
};
constexpr DecoderCase kDecoders[] = {
    {"prefill_135m", "135M prefill", 9, 3, 64, 512, 512},
    {"prefill_1b", "1.1B prefill", 32, 4, 64, 512, 2048},
    {"prefill_8b", "8B prefill", 32, 8, 128, 256, 4096},
    {"decode_135m", "135M decode", 9, 3, 64, 1, 640},
    {"decode_1b", "1.1B decode", 32, 4, 64, 1, 2048},
    {"decode_8b", "8B decode", 32, 8, 128, 1, 8192},
};

struct Machine {
  ThreadPool* pool;
  KernelTable kernels;
  CpuCeilings ceilings;
};

struct Json {
  std::string text;
  void add(const std::string& key, double value) {
    text += fmt::format("{}\"{}\": {:.4g}", text.empty() ? "" : ", ", key, value);
  }
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Shortest of calls repeated for kSecondsPerFigure, after one to warm up.
template <typename F>
double shortest(F&& call) {
  call();
  double best = 1e9;
  const double end = seconds_now() + kSecondsPerFigure;
  do {
    const double start = seconds_now();
    call();
    best = std::min(best, seconds_now() - start);
  } while (seconds_now() < end);
  return best;
}

std::vector<float> random_floats(int64_t n) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<size_t>(n));
  for (float& v : out) v = normal(generator);
  return out;
}

void run_tower(const Machine& machine, const TowerCase& c, const std::string& level, Json& json) {
  const int64_t width = c.n_heads * c.head_dim;
  const std::vector<float> qkv = random_floats(c.n_rows * 3 * width);
  std::vector<float> out(static_cast<size_t>(c.n_rows * width));
  const int32_t starts[] = {0, static_cast<int32_t>(c.n_rows)};
  std::vector<std::byte> scratch(
      segment_attention_scratch_bytes(c.n_rows, c.n_heads, c.head_dim, machine.pool->size()));
  const SegmentAttentionArgs args{.q = qkv.data(),
                                  .k = qkv.data() + width,
                                  .v = qkv.data() + 2 * width,
                                  .ld = 3 * width,
                                  .n_heads = c.n_heads,
                                  .head_dim = c.head_dim,
                                  .segment_starts = starts,
                                  .n_segments = 1,
                                  .scale = 1.0f / std::sqrt(static_cast<float>(c.head_dim)),
                                  .out = out.data(),
                                  .ldo = width,
                                  .scratch = scratch.data()};
  const Stream stream{machine.pool, nullptr};
  const double s = shortest([&] { machine.kernels.segment_attention(args, stream); });
  const double flops =
      attention_cost(c.n_rows * c.n_rows, c.n_heads, c.n_heads, c.head_dim, 0, DType::kF32).flops;
  const double fraction = flops / s / machine.ceilings.f32_flops;
  fmt::print("  {:<16} {:>3} x {:<3} {:>5} rows            {:>9.3f} ms {:>8.1f} GFLOP/s {:>6.2f}\n",
             c.what, c.n_heads, c.head_dim, c.n_rows, s * 1e3, flops / s * 1e-9, fraction);
  json.add(fmt::format("{}_tower_{}_peak_fraction", level, c.key), fraction);
}

void run_decoder(const Machine& machine, const DecoderCase& c, DType dtype,
                 const std::string& level, Json& json) {
  KvLayer cache{dtype, c.n_kv_heads, c.head_dim, nullptr,
                KvLayer::page_bytes(dtype, c.n_kv_heads, c.head_dim)};
  const int64_t n_pages = (c.kv_len + kPageTokens - 1) / kPageTokens;
  Result<PageBuffer> memory =
      PageBuffer::allocate(static_cast<size_t>(n_pages * cache.page_stride), true);
  if (!memory.is_ok()) {
    fmt::print("  {:<16} {}\n", c.what, memory.status().message());
    return;
  }
  cache.base = memory->data();
  std::vector<int32_t> pages(static_cast<size_t>(n_pages));
  std::iota(pages.begin(), pages.end(), 0);
  std::shuffle(pages.begin(), pages.end(), std::mt19937(3));

  const Stream stream{machine.pool, nullptr};
  const int64_t kv_width = c.n_kv_heads * c.head_dim;
  const std::vector<float> kv = random_floats(c.kv_len * kv_width);
  const SequenceRows whole{0, c.kv_len, c.kv_len, pages.data()};
  machine.kernels.kv_write({kv.data(), kv_width, kv.data(), kv_width, cache, &whole, 1}, stream);

  const int64_t width = c.n_heads * c.head_dim;
  const std::vector<float> q = random_floats(c.n_rows * width);
  std::vector<float> out(q.size());
  const SequenceRows rows{0, c.n_rows, c.kv_len, pages.data()};
  const PagedAttentionArgs args{.q = q.data(),
                                .ldq = width,
                                .n_heads = c.n_heads,
                                .cache = cache,
                                .sequences = &rows,
                                .n_sequences = 1,
                                .scale = 1.0f / std::sqrt(static_cast<float>(c.head_dim)),
                                .out = out.data(),
                                .ldo = width};
  const double s = shortest([&] { machine.kernels.paged_attention(args, stream); });
  const int64_t pairs = c.n_rows * (c.kv_len - c.n_rows) + c.n_rows * (c.n_rows + 1) / 2;
  const OpCost cost = attention_cost(pairs, c.n_heads, c.n_kv_heads, c.head_dim, c.kv_len, dtype);
  const double fraction = cost.flops / s / machine.ceilings.f32_flops;
  fmt::print(
      "  {:<16} {:>2}/{:<2} x {:<3} {:>4} rows, {:>4} keys {:<4} {:>9.3f} ms {:>8.1f} "
      "GFLOP/s {:>6.2f} {:>7.1f} GB/s\n",
      c.what, c.n_heads, c.n_kv_heads, c.head_dim, c.n_rows, c.kv_len, dtype_name(dtype), s * 1e3,
      cost.flops / s * 1e-9, fraction, cost.bytes / s * 1e-9);
  const std::string name = fmt::format("{}_{}_{}", level, c.key, dtype_name(dtype));
  if (c.n_rows > 1) {
    json.add(name + "_peak_fraction", fraction);
  } else {
    json.add(name + "_gb_per_s", cost.bytes / s * 1e-9);
  }
}

int run() {
  const Settings settings = Settings::from_environment();
  const Result<int> threads = settings.thread_count();
  std::vector<CpuIsa> levels;
  for (const CpuIsa level : available_cpu_isas()) {
    // From avx512_bf16 on attention is that of avx512.
    if (level >= CpuIsa::kAvx2 && level <= CpuIsa::kAvx512) levels.push_back(level);
  }
  if (settings.cpu_isa != "auto") {
    const Result<CpuIsa> one = resolve_cpu_isa(settings.cpu_isa);
    if (!one.is_ok()) {
      fmt::print(stderr, "{}\n", one.status().message());
      return exit_code(one.status().code());
    }
    levels = {std::min(*one, CpuIsa::kAvx512)};
  }
  if (!threads.is_ok()) {
    fmt::print(stderr, "{}\n", threads.status().message());
    return exit_code(threads.status().code());
  }
  ThreadPool pool(*threads);
  Json json;
  json.add("threads", *threads);
  for (const CpuIsa level : levels) {
    const Result<KernelTable> kernels = make_cpu_kernels(level);
    if (!kernels.is_ok()) {
      fmt::print(stderr, "{}\n", kernels.status().message());
      return exit_code(kernels.status().code());
    }
    const Machine machine{&pool, *kernels, measure_arithmetic(level, pool)};
    const std::string name(cpu_isa_name(level));
    fmt::print(
        "{}, {} threads, f32 peak {:.1f} GFLOP/s; the last columns: fraction of it, bytes "
        "of keys and values\n",
        name, *threads, machine.ceilings.f32_flops * 1e-9);
    for (const TowerCase& c : kTowers) run_tower(machine, c, name, json);
    for (const DecoderCase& c : kDecoders) {
      for (const DType dtype : {DType::kF32, DType::kBF16}) {
        run_decoder(machine, c, dtype, name, json);
      }
    }
  }
  fmt::print("RESULT {{{}}}\n", json.text);
  return 0;
}

}  // namespace
}  // namespace triptych

int main() { return triptych::run(); }
