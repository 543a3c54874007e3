#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/cpu/cpu_ops.h"
#include "ops/rope.h"
#include "ref/random_data.h"
#include "ref/rope_ref.h"

namespace triptych {
namespace {

class RopeTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Levels, RopeTest, testing::ValuesIn(available_cpu_isas()),
                         [](const auto& level) { return std::string(cpu_isa_name(level.param)); });

TEST_P(RopeTest, MatchesTheReferenceAndLeavesTheRestAlone) {
  KernelTable table;
  fill_cpu_ops(table, GetParam());
  ThreadPool pool(2);
  for (const auto& [head_dim, rot] : std::vector<std::pair<int64_t, int64_t>>{
           {64, 64}, {128, 128}, {80, 32}, {6, 6}, {10, 4}, {64, 0}, {72, 72}}) {
    const int64_t n = 40;
    const int64_t heads = 3;
    const int64_t ld = heads * head_dim + 7;
    const std::vector<float> x = ref::random_floats(n * ld, 1);
    const std::vector<float> angles = ref::random_floats(n * rot / 2, 2, 10.0f);
    std::vector<float> cos;
    std::vector<float> sin;
    for (float a : angles) {
      cos.push_back(std::cos(a));
      sin.push_back(std::sin(a));
    }
    std::vector<float> got = x;
    table.rope({got.data(), ld, n, heads, head_dim, rot, cos.data(), sin.data()}, {&pool, nullptr});
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t at = i * ld + h * head_dim;
        const std::vector<double> want =
            ref::rope_head(&x[static_cast<size_t>(at)], head_dim, rot, cos.data() + i * rot / 2,
                           sin.data() + i * rot / 2);
        for (int64_t d = 0; d < head_dim; ++d) {
          const float v = got[static_cast<size_t>(at + d)];
          if (d < rot) {
            ASSERT_NEAR(v, want[static_cast<size_t>(d)], 1e-6) << head_dim << " " << rot;
          } else {
            ASSERT_EQ(v, x[static_cast<size_t>(at + d)]);
          }
        }
      }
      for (int64_t j = heads * head_dim; j < ld; ++j) {
        ASSERT_EQ(got[static_cast<size_t>(i * ld + j)], x[static_cast<size_t>(i * ld + j)]);
      }
      // The row alone gives the same bits.
      std::vector<float> row(x.begin() + i * ld, x.begin() + (i + 1) * ld);
      table.rope({row.data(), ld, 1, heads, head_dim, rot, cos.data() + i * rot / 2,
                  sin.data() + i * rot / 2},
                 {&pool, nullptr});
      ASSERT_EQ(0, std::memcmp(row.data(), &got[static_cast<size_t>(i * ld)],
                               row.size() * sizeof(float)));
    }
  }
}

}  // namespace
}  // namespace triptych
