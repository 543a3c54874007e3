#include "ops/linear.h"
#include "ops/embedding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/test_guarded_memory.h"
#include "base/checked.h"
#include "ref/linear_ref.h"

namespace triptych {
namespace {

/// One way to compute products on this machine.
struct Variant {
  CpuIsa level;
  DType dtype;
  MatmulMode mode;
};

/// All of them; levels that the machine lacks are not instantiated.
std::vector<Variant> variants() {
  std::vector<Variant> out;
  for (const CpuIsa level : available_cpu_isas()) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      out.push_back({level, dtype, MatmulMode::kF32});
    }
    if (cpu_has_bf16_matmul(level)) out.push_back({level, DType::kBF16, MatmulMode::kBF16});
  }
  return out;
}

std::string variant_name(const ::testing::TestParamInfo<Variant>& info) {
  const Variant& v = info.param;
  return std::string(cpu_isa_name(v.level)) + "_" + std::string(dtype_name(v.dtype)) +
         (v.mode == MatmulMode::kBF16 ? "_native" : "");
}

/// A dense matrix in a weight's own number format, and the values that it holds as f32.
struct DenseWeight {
  std::vector<std::byte> raw;
  std::vector<float> values;
};

class LinearTest : public ::testing::TestWithParam<Variant> {
 protected:
  LinearTest() : table_(make_cpu_kernels(GetParam().level).value()) {}

  std::vector<float> random(int64_t n) {
    std::normal_distribution<float> normal;
    std::vector<float> out(static_cast<size_t>(n));
    for (float& v : out) v = normal(random_);
    return out;
  }

  DenseWeight dense(std::vector<float> values) const {
    DenseWeight out;
    const auto size = static_cast<size_t>(dtype_bytes(GetParam().dtype));
    out.raw.resize(values.size() * size);
    for (size_t i = 0; i < values.size(); ++i) {
      if (GetParam().dtype == DType::kF32) {
        std::memcpy(&out.raw[i * size], &values[i], size);
        continue;
      }
      const bool bf16 = GetParam().dtype == DType::kBF16;
      const uint16_t half = bf16 ? f32_to_bf16(values[i]) : f32_to_f16(values[i]);
      std::memcpy(&out.raw[i * size], &half, size);
      values[i] = bf16 ? bf16_to_f32(half) : f16_to_f32(half);
    }
    out.values = std::move(values);
    return out;
  }

  DenseWeight random_weight(int64_t n, int64_t k) { return dense(random(n * k)); }

  /// Memory for a packed weight, filled with a pattern that packing must overwrite.
  PackedWeight packed(int64_t n, int64_t k) {
    const size_t bytes = packed_weight_bytes(GetParam().dtype, n, k);
    memory_.push_back(std::make_unique<GuardedMemory>(bytes, 64));
    std::memset(memory_.back()->data(), 0xff, bytes);
    return {.dtype = GetParam().dtype, .n = n, .k = k, .data = memory_.back()->data()};
  }

  void pack(const DenseWeight& w, int64_t first_row, int64_t stride, const PackedWeight& dst) {
    const auto rows = static_cast<int64_t>(w.values.size()) / dst.k;
    table_.pack_weight({.src = w.raw.data(),
                        .n_rows = rows,
                        .first_row = first_row,
                        .panel_stride = stride,
                        .dst = dst},
                       Stream{.pool = &pool_});
  }

  PackedWeight pack_whole(const DenseWeight& w, int64_t n, int64_t k) {
    const PackedWeight dst = packed(n, k);
    pack(w, 0, 1, dst);
    return dst;
  }

  /// Rows as the products see them.
  std::vector<float> as_multiplied(std::vector<float> x) const {
    if (GetParam().mode == MatmulMode::kBF16) {
      for (float& v : x) v = bf16_to_f32(f32_to_bf16(v));
    }
    return x;
  }

  /// Runs the kernel on x [m, w.k] with row strides larger than the rows.
  std::vector<float> run(const std::vector<float>& x, const PackedWeight& w, LinearArgs args,
                         ThreadPool& pool) {
    const auto m = static_cast<int64_t>(x.size()) / w.k;
    const int64_t n_out = args.gated ? w.n / 2 : w.n;
    args.m = m;
    args.w = w;
    args.mode = GetParam().mode;
    args.ldx = w.k + (m > 1 ? 3 : 0);
    args.ldo = n_out + 5;
    std::vector<float> wide(static_cast<size_t>((m - 1) * args.ldx + w.k));
    for (int64_t r = 0; r < m; ++r) {
      std::copy_n(x.begin() + r * w.k, w.k, wide.begin() + r * args.ldx);
    }
    GuardedMemory x_memory(wide);
    args.x = x_memory.f32();
    std::vector<float> bias;
    if (args.bias != nullptr) bias.assign(args.bias, args.bias + w.n);
    GuardedMemory bias_memory(bias);
    if (args.bias != nullptr) args.bias = bias_memory.f32();
    GuardedMemory out(
        std::vector<float>(static_cast<size_t>((m - 1) * args.ldo + n_out), kUntouched));
    if (args.residual != nullptr) {  // the residual is the output itself
      for (int64_t r = 0; r < m; ++r) {
        std::copy_n(args.residual + r * n_out, n_out, out.f32() + r * args.ldo);
      }
      args.residual = out.f32();
      args.ld_residual = args.ldo;
    }
    args.out = out.f32();
    const size_t bytes = linear_scratch_bytes(m, w.k, args.mode);
    GuardedMemory scratch(bytes, 64);
    std::memset(scratch.data(), 0xff, bytes);
    args.scratch = scratch.data();
    table_.linear(args, Stream{.pool = &pool});
    std::vector<float> dense_out;
    for (int64_t r = 0; r < m; ++r) {
      const float* row = out.f32() + r * args.ldo;
      dense_out.insert(dense_out.end(), row, row + n_out);
      for (int64_t c = n_out; r + 1 < m && c < args.ldo; ++c) EXPECT_EQ(row[c], kUntouched);
    }
    return dense_out;
  }

  std::vector<float> run(const std::vector<float>& x, const PackedWeight& w,
                         const LinearArgs& args = {}) {
    return run(x, w, args, pool_);
  }

  /// The sum of k rounded products, and then an activation.
  static double tolerance(double magnitude) { return 1e-6 * magnitude + 2e-6; }

  static constexpr float kUntouched = -12345.0f;
  KernelTable table_;
  ThreadPool pool_{2};
  std::mt19937 random_{7};
  std::vector<std::unique_ptr<GuardedMemory>> memory_;
};

TEST_P(LinearTest, MatchesFloat64ForOddShapes) {
  const int64_t shapes[][3] = {{1, 16, 32},   {1, 1, 1},     {2, 17, 3},    {3, 33, 31},
                               {5, 40, 33},   {8, 100, 65},  {13, 257, 47}, {16, 48, 64},
                               {17, 31, 96},  {33, 130, 70}, {47, 16, 129}, {70, 90, 161},
                               {1, 300, 1001}};
  for (const auto& [m, n, k] : shapes) {
    const std::vector<float> x = random(m * k);
    const DenseWeight w = random_weight(n, k);
    const std::vector<float> got = run(x, pack_whole(w, n, k));
    const ref::Product want = ref::product(as_multiplied(x), w.values, nullptr, k);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], want.value[i], tolerance(want.magnitude[i]))
          << "m " << m << " n " << n << " k " << k << " at " << i;
    }
  }
}

TEST_P(LinearTest, EveryHeightMatches) {
  constexpr int64_t kN = 83;
  constexpr int64_t kK = 45;
  const DenseWeight w = random_weight(kN, kK);
  const PackedWeight packed_w = pack_whole(w, kN, kK);
  for (int64_t m = 1; m <= 70; ++m) {
    const std::vector<float> x = random(m * kK);
    const std::vector<float> got = run(x, packed_w);
    const ref::Product want = ref::product(as_multiplied(x), w.values, nullptr, kK);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], want.value[i], tolerance(want.magnitude[i])) << "m " << m << " at " << i;
    }
  }
}

TEST_P(LinearTest, EpiloguesMatch) {
  constexpr int64_t kN = 75;
  constexpr int64_t kK = 40;
  const DenseWeight w = random_weight(kN, kK);
  const PackedWeight packed_w = pack_whole(w, kN, kK);
  const std::vector<float> bias = random(kN);
  for (const Activation act : {Activation::kNone, Activation::kGeluErf, Activation::kGeluTanh,
                               Activation::kQuickGelu, Activation::kSilu, Activation::kRelu}) {
    for (const int64_t m : {1, 4, 37}) {
      for (const bool with_residual : {false, true}) {
        const std::vector<float> x = random(m * kK);
        const std::vector<float> residual = random(m * kN);
        const std::vector<float> got = run(x, packed_w,
                                           {.bias = bias.data(),
                                            .residual = with_residual ? residual.data() : nullptr,
                                            .act = act});
        const ref::Product want = ref::product(as_multiplied(x), w.values, bias.data(), kK);
        for (size_t i = 0; i < got.size(); ++i) {
          const double value = ref::activate(act, want.value[i]) +
                               (with_residual ? static_cast<double>(residual[i]) : 0.0);
          ASSERT_NEAR(got[i], value, 1.2 * tolerance(want.magnitude[i]) + 1e-6)
              << "activation " << static_cast<int>(act) << " m " << m << " at " << i;
        }
      }
    }
  }
}

TEST_P(LinearTest, GatedMatches) {
  constexpr int64_t kF = 80;
  constexpr int64_t kK = 51;
  const DenseWeight gate = random_weight(kF, kK);
  const DenseWeight up = random_weight(kF, kK);
  const PackedWeight w = packed(2 * kF, kK);
  pack(gate, 0, 2, w);
  pack(up, kPanelRows, 2, w);
  const std::vector<float> bias = random(2 * kF);  // in packed order: 16 gate, 16 up, ...
  std::vector<float> gate_bias;
  std::vector<float> up_bias;
  for (int64_t i = 0; i < 2 * kF; ++i) {
    (i / kPanelRows % 2 == 0 ? gate_bias : up_bias).push_back(bias[static_cast<size_t>(i)]);
  }
  for (const int64_t m : {1, 3, 7, 30, 65}) {
    for (const bool with_bias : {false, true}) {
      const std::vector<float> x = random(m * kK);
      const std::vector<float> residual = random(m * kF);
      const std::vector<float> got = run(x, w,
                                         {.bias = with_bias ? bias.data() : nullptr,
                                          .residual = residual.data(),
                                          .act = Activation::kSilu,
                                          .gated = true});
      const auto g =
          ref::product(as_multiplied(x), gate.values, with_bias ? gate_bias.data() : nullptr, kK);
      const auto u =
          ref::product(as_multiplied(x), up.values, with_bias ? up_bias.data() : nullptr, kK);
      for (size_t i = 0; i < got.size(); ++i) {
        const double a = ref::activate(Activation::kSilu, g.value[i]);
        const double slack = 1.2 * tolerance(g.magnitude[i]) * (std::fabs(u.value[i]) + 1) +
                             tolerance(u.magnitude[i]) * (std::fabs(a) + 1);
        ASSERT_NEAR(got[i], a * u.value[i] + static_cast<double>(residual[i]), slack)
            << "m " << m << " at " << i;
      }
    }
  }
}

TEST_P(LinearTest, FusedRowsLieOneAfterAnother) {
  constexpr int64_t kK = 37;
  const int64_t sizes[] = {24, 9, 13};  // q, k, v: none fills whole panels
  const PackedWeight w = packed(46, kK);
  std::vector<float> all;
  int64_t first = 0;
  for (const int64_t n : sizes) {
    const DenseWeight part = random_weight(n, kK);
    pack(part, first, 1, w);
    all.insert(all.end(), part.values.begin(), part.values.end());
    first += n;
  }
  const std::vector<float> x = random(5 * kK);
  const std::vector<float> got = run(x, w);
  const ref::Product want = ref::product(as_multiplied(x), all, nullptr, kK);
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want.value[i], tolerance(want.magnitude[i])) << i;
  }
}

// A row alone, in any batch, at any place, with any number of threads: the same bits.
TEST_P(LinearTest, RowsDoNotDependOnTheBatch) {
  const int64_t shapes[][2] = {{16 * 9 + 5, 333}, {16 * 40, 64}, {16 * 5, 3001}};
  for (const auto& [n, k] : shapes) {
    const DenseWeight w = random_weight(n, k);
    const PackedWeight packed_w = pack_whole(w, n, k);
    const std::vector<float> x = random(150 * k);
    const LinearArgs args = {.act = Activation::kGeluErf};
    ThreadPool one(1);
    const std::vector<float> all = run(x, packed_w, args, one);
    for (const int n_threads : {1, 2, 3}) {
      ThreadPool pool(n_threads);
      for (const int64_t m : {1, 2, 3, 5, 6, 7, 8, 11, 12, 13, 16, 25, 31, 33, 64, 150}) {
        const int64_t begin = (150 - m) / 2;
        const std::vector<float> part(x.begin() + begin * k, x.begin() + (begin + m) * k);
        const std::vector<float> got = run(part, packed_w, args, pool);
        ASSERT_EQ(std::memcmp(got.data(), all.data() + begin * n, got.size() * sizeof(float)), 0)
            << "m " << m << " n " << n << " k " << k << " threads " << n_threads;
      }
    }
  }
}

TEST_P(LinearTest, NotANumberAndInfinityArrive) {
  constexpr int64_t kN = 20;
  constexpr int64_t kK = 35;
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const Activation act : {Activation::kNone, Activation::kGeluErf, Activation::kGeluTanh,
                               Activation::kQuickGelu, Activation::kSilu, Activation::kRelu}) {
    const DenseWeight w = dense(std::vector<float>(kN * kK, 0.5f));
    const PackedWeight packed_w = pack_whole(w, kN, kK);
    for (const int64_t m : {3, 40}) {
      std::vector<float> x(static_cast<size_t>(m * kK), 1.0f);
      x[static_cast<size_t>(kK + 34)] = kNaN;
      x[static_cast<size_t>(2 * kK)] = kInf;
      const std::vector<float> out = run(x, packed_w, {.act = act});
      for (size_t c = 0; c < kN; ++c) {
        EXPECT_TRUE(std::isfinite(out[c]));
        EXPECT_TRUE(std::isnan(out[kN + c]));
        EXPECT_EQ(out[2 * kN + c], kInf) << "activation " << static_cast<int>(act);
      }
    }
  }
}

TEST_P(LinearTest, EmbeddingGivesTheRowsBack) {
  for (const int64_t d : {1, 7, 64}) {
    constexpr int64_t kVocab = 53;
    const DenseWeight w = random_weight(kVocab, d);
    const PackedWeight table = pack_whole(w, kVocab, d);
    const std::vector<int32_t> ids = {0, 52, 15, 16, 17, 31, 32, 47, 48, 3, 3, 50};
    const int64_t ldo = d + 2;
    std::vector<float> out(ids.size() * static_cast<size_t>(ldo));
    table_.embedding({.table = table,
                      .ids = ids.data(),
                      .n = static_cast<int64_t>(ids.size()),
                      .out = out.data(),
                      .ldo = ldo},
                     Stream{.pool = &pool_});
    for (size_t i = 0; i < ids.size(); ++i) {
      for (int64_t c = 0; c < d; ++c) {
        EXPECT_EQ(out[i * static_cast<size_t>(ldo) + static_cast<size_t>(c)],
                  w.values[static_cast<size_t>(ids[i] * d + c)]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, LinearTest, ::testing::ValuesIn(variants()), variant_name);

}  // namespace
}  // namespace triptych
