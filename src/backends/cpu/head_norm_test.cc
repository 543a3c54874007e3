#include "ops/head_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backends/cpu/cpu_ops.h"
#include "ref/head_norm_ref.h"
#include "ref/random_data.h"

namespace triptych {
namespace {

class HeadNormTest : public testing::TestWithParam<CpuIsa> {
 protected:
  HeadNormTest() { fill_cpu_ops(table_, GetParam()); }

  KernelTable table_;
};

INSTANTIATE_TEST_SUITE_P(Levels, HeadNormTest, testing::ValuesIn(available_cpu_isas()),
                         [](const auto& level) { return std::string(cpu_isa_name(level.param)); });

TEST_P(HeadNormTest, MatchesTheReferenceAndLeavesTheRestAlone) {
  ThreadPool pool(2);
  for (const int64_t head_dim : {1, 2, 7, 16, 64, 80, 100, 128, 259}) {
    for (const int64_t heads : {1, 3, 8}) {
      const int64_t n = 21;
      const int64_t ld = heads * head_dim + 5;
      const std::vector<float> x = ref::random_floats(n * ld, 1);
      const std::vector<float> weight = ref::random_floats(head_dim, 2);
      std::vector<float> got = x;
      table_.head_norm({got.data(), ld, n, heads, head_dim, weight.data(), 1e-6f},
                       {&pool, nullptr});
      for (int64_t i = 0; i < n; ++i) {
        const std::vector<double> want =
            ref::head_norm(&x[static_cast<size_t>(i * ld)], heads, head_dim, weight.data(), 1e-6f);
        for (int64_t j = 0; j < ld; ++j) {
          const float v = got[static_cast<size_t>(i * ld + j)];
          if (j < heads * head_dim) {
            const double w = want[static_cast<size_t>(j)];
            ASSERT_NEAR(v, w, 2e-6 * std::max(1.0, std::abs(w))) << heads << " of " << head_dim;
          } else {
            ASSERT_EQ(v, x[static_cast<size_t>(i * ld + j)]);
          }
        }
      }
    }
  }
}

TEST_P(HeadNormTest, ARowAloneAndOtherThreadsGiveTheSameBits) {
  const int64_t n = 300;
  const int64_t heads = 6;
  const int64_t head_dim = 75;
  const int64_t ld = heads * head_dim + 3;
  const std::vector<float> x = ref::random_floats(n * ld, 3);
  const std::vector<float> weight = ref::random_floats(head_dim, 4);
  ThreadPool one(1);
  ThreadPool three(3);
  std::vector<float> whole = x;
  table_.head_norm({whole.data(), ld, n, heads, head_dim, weight.data(), 1e-6f}, {&one, nullptr});
  std::vector<float> threaded = x;
  table_.head_norm({threaded.data(), ld, n, heads, head_dim, weight.data(), 1e-6f},
                   {&three, nullptr});
  EXPECT_EQ(whole, threaded);
  for (int64_t i = 0; i < n; i += 37) {
    std::vector<float> row(x.begin() + i * ld, x.begin() + (i + 1) * ld);
    table_.head_norm({row.data(), ld, 1, heads, head_dim, weight.data(), 1e-6f}, {&one, nullptr});
    EXPECT_TRUE(std::equal(row.begin(), row.end(), whole.begin() + i * ld)) << i;
    // A head's bits do not depend on which head it is either.
    std::vector<float> last(x.begin() + i * ld + (heads - 1) * head_dim,
                            x.begin() + i * ld + heads * head_dim);
    table_.head_norm({last.data(), head_dim, 1, 1, head_dim, weight.data(), 1e-6f},
                     {&one, nullptr});
    EXPECT_TRUE(
        std::equal(last.begin(), last.end(), whole.begin() + i * ld + (heads - 1) * head_dim));
  }
}

TEST_P(HeadNormTest, ZerosStayAndNaNStaysInItsHead) {
  ThreadPool pool(1);
  std::vector<float> x(3 * 20, 0.0f);
  const std::vector<float> ones(20, 1.0f);
  table_.head_norm({x.data(), 60, 1, 3, 20, ones.data(), 1e-6f}, {&pool, nullptr});
  EXPECT_EQ(x, std::vector<float>(60, 0.0f));
  x[25] = NAN;
  table_.head_norm({x.data(), 60, 1, 3, 20, ones.data(), 1e-6f}, {&pool, nullptr});
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(std::isnan(x[i]), i >= 20 && i < 40) << i;
  table_.head_norm({nullptr, 60, 0, 3, 20, ones.data(), 1e-6f}, {&pool, nullptr});
}

}  // namespace
}  // namespace triptych
