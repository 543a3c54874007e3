#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/cpu/cpu_ops.h"
#include "ops/norm.h"
#include "ref/norm_ref.h"
#include "ref/random_data.h"

namespace triptych {
namespace {

class NormTest : public testing::TestWithParam<CpuIsa> {
 protected:
  NormTest() { fill_cpu_ops(table_, GetParam()); }

  /// n rows of d with strides wider than d, filled with NaN beyond the row.
  static std::vector<float> rows(int64_t n, int64_t d, int64_t ld, uint32_t seed, float offset) {
    std::vector<float> out(static_cast<size_t>(n * ld), NAN);
    const std::vector<float> values = ref::random_floats(n * d, seed);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < d; ++j) {
        out[static_cast<size_t>(i * ld + j)] = values[static_cast<size_t>(i * d + j)] + offset;
      }
    }
    return out;
  }

  KernelTable table_;
  ThreadPool pool_{2};
  Stream stream_{&pool_, nullptr};
};

INSTANTIATE_TEST_SUITE_P(Levels, NormTest, testing::ValuesIn(available_cpu_isas()),
                         [](const auto& level) { return std::string(cpu_isa_name(level.param)); });

TEST_P(NormTest, RmsNormMatchesTheReference) {
  for (const int64_t d : {1, 3, 16, 64, 100, 576, 1027, 8192}) {
    const int64_t n = 5;
    const int64_t ld = d + 3;
    const std::vector<float> x = rows(n, d, ld, 1, 0);
    const std::vector<float> weight = ref::random_floats(d, 2);
    std::vector<float> out(x.size(), -1);
    table_.rms_norm({x.data(), ld, n, d, weight.data(), 1e-5f, out.data(), ld}, stream_);
    for (int64_t i = 0; i < n; ++i) {
      const auto want = ref::rms_norm(&x[static_cast<size_t>(i * ld)], d, weight.data(), 1e-5f);
      for (int64_t j = 0; j < d; ++j) {
        ASSERT_NEAR(out[static_cast<size_t>(i * ld + j)], want[static_cast<size_t>(j)],
                    2e-6 * std::max(1.0, std::abs(want[static_cast<size_t>(j)])))
            << d;
      }
      for (int64_t j = d; j < ld; ++j) ASSERT_EQ(out[static_cast<size_t>(i * ld + j)], -1);
    }
  }
}

TEST_P(NormTest, LayerNormMatchesTheReferenceFarFromZero) {
  for (const float offset : {0.0f, 100.0f}) {
    for (const int64_t d : {1, 3, 64, 100, 768, 1027}) {
      const std::vector<float> x = rows(4, d, d, 3, offset);
      const std::vector<float> weight = ref::random_floats(d, 4);
      const std::vector<float> bias = ref::random_floats(d, 5);
      std::vector<float> out(x.size());
      table_.layer_norm({x.data(), d, 4, d, weight.data(), bias.data(), 1e-6f, out.data(), d},
                        stream_);
      for (int64_t i = 0; i < 4; ++i) {
        const auto want =
            ref::layer_norm(&x[static_cast<size_t>(i * d)], d, weight.data(), bias.data(), 1e-6f);
        // The mean itself is only known to f32: a larger offset costs as many digits.
        const double tolerance = offset == 0 ? 5e-6 : 2e-4;
        for (int64_t j = 0; j < d; ++j) {
          ASSERT_NEAR(out[static_cast<size_t>(i * d + j)], want[static_cast<size_t>(j)], tolerance)
              << d << " offset " << offset;
        }
      }
    }
  }
}

TEST_P(NormTest, InPlaceAndRowsAloneGiveTheSameBits) {
  const int64_t n = 300;
  const int64_t d = 333;
  const std::vector<float> x = rows(n, d, d, 6, 0);
  const std::vector<float> weight = ref::random_floats(d, 7);
  const std::vector<float> bias = ref::random_floats(d, 8);
  std::vector<float> whole(x.size());
  std::vector<float> in_place = x;
  table_.layer_norm({x.data(), d, n, d, weight.data(), bias.data(), 1e-6f, whole.data(), d},
                    stream_);
  table_.layer_norm(
      {in_place.data(), d, n, d, weight.data(), bias.data(), 1e-6f, in_place.data(), d}, stream_);
  EXPECT_EQ(whole, in_place);
  in_place = x;
  table_.rms_norm({x.data(), d, n, d, weight.data(), 1e-6f, whole.data(), d}, stream_);
  table_.rms_norm({in_place.data(), d, n, d, weight.data(), 1e-6f, in_place.data(), d}, stream_);
  EXPECT_EQ(whole, in_place);
  std::vector<float> row(static_cast<size_t>(d));
  for (int64_t i = 0; i < n; i += 37) {
    table_.rms_norm({&x[static_cast<size_t>(i * d)], d, 1, d, weight.data(), 1e-6f, row.data(), d},
                    stream_);
    EXPECT_EQ(
        0, std::memcmp(row.data(), &whole[static_cast<size_t>(i * d)], row.size() * sizeof(float)));
  }
}

TEST_P(NormTest, ZerosAndNoRows) {
  const std::vector<float> x(32, 0.0f);
  const std::vector<float> ones(32, 1.0f);
  std::vector<float> out(32, -1);
  table_.rms_norm({x.data(), 32, 1, 32, ones.data(), 1e-6f, out.data(), 32}, stream_);
  EXPECT_EQ(out, x);
  table_.layer_norm({x.data(), 32, 1, 32, ones.data(), ones.data(), 1e-6f, out.data(), 32},
                    stream_);
  EXPECT_EQ(out, ones);
  table_.rms_norm({x.data(), 32, 0, 32, ones.data(), 1e-6f, nullptr, 32}, stream_);
}

}  // namespace
}  // namespace triptych
