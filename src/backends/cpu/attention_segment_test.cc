// segment_attention against a float64 reference, at every level of this machine.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/cpu/cpu_ops.h"
#include "ops/attention.h"
#include "ref/attention_ref.h"
#include "ref/random_data.h"

namespace triptych {
namespace {

/// Rows of q, k and v side by side, as a fused projection leaves them.
struct SegmentCase {
  int64_t n_heads;
  int64_t head_dim;
  std::vector<int32_t> starts;
  std::vector<float> rows;

  SegmentCase(int64_t heads, int64_t dim, const std::vector<int64_t>& lengths, uint32_t seed)
      : n_heads(heads), head_dim(dim), starts{0} {
    for (int64_t n : lengths) starts.push_back(static_cast<int32_t>(starts.back() + n));
    rows = ref::random_floats(n_rows() * ld(), seed);
  }
  int64_t n_rows() const { return starts.back(); }
  int64_t width() const { return n_heads * head_dim; }
  int64_t ld() const { return 3 * width(); }

  std::vector<float> run(CpuIsa isa, int threads) const {
    KernelTable table;
    fill_cpu_ops(table, isa);
    ThreadPool pool(threads);
    Result<Arena> arena =
        Arena::create(segment_attention_scratch_bytes(n_rows(), n_heads, head_dim, threads) + 64);
    EXPECT_TRUE(arena.is_ok());
    OpContext ctx;
    ctx.kernels = &table;
    ctx.stream.pool = &pool;
    ctx.scratch = &*arena;
    std::vector<float> out(static_cast<size_t>(n_rows() * width()), NAN);
    const Status status =
        segment_attention(ctx, {.q = rows.data(),
                                .k = rows.data() + width(),
                                .v = rows.data() + 2 * width(),
                                .ld = ld(),
                                .n_heads = n_heads,
                                .head_dim = head_dim,
                                .segment_starts = starts.data(),
                                .n_segments = static_cast<int64_t>(starts.size()) - 1,
                                .scale = scale(),
                                .out = out.data(),
                                .ldo = width(),
                                .scratch = nullptr});
    EXPECT_TRUE(status.is_ok()) << status.message();
    return out;
  }

  float scale() const { return 1.0f / std::sqrt(static_cast<float>(head_dim)); }

  double error(const std::vector<float>& out) const {
    double worst = 0;
    for (size_t s = 0; s + 1 < starts.size(); ++s) {
      for (int64_t i = starts[s]; i < starts[s + 1]; ++i) {
        for (int64_t h = 0; h < n_heads; ++h) {
          const float* row = rows.data() + i * ld() + h * head_dim;
          const float* first = rows.data() + starts[s] * ld() + h * head_dim;
          const std::vector<double> want =
              ref::attend(row, head_dim, {first + width(), ld()}, {first + 2 * width(), ld()}, 0,
                          starts[s + 1] - starts[s], static_cast<double>(scale()));
          for (int64_t d = 0; d < head_dim; ++d) {
            const double got = out[static_cast<size_t>(i * width() + h * head_dim + d)];
            const double difference = std::abs(got - want[static_cast<size_t>(d)]);
            worst = difference <= worst ? worst : difference;
          }
        }
      }
    }
    return worst;
  }
};

class SegmentAttentionTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Levels, SegmentAttentionTest, testing::ValuesIn(available_cpu_isas()),
                         [](const auto& level) { return std::string(cpu_isa_name(level.param)); });

TEST_P(SegmentAttentionTest, MatchesTheReference) {
  for (const int64_t head_dim : {1, 15, 64, 72, 80, 88, 96, 128, 256}) {
    for (const std::vector<int64_t>& lengths :
         std::vector<std::vector<int64_t>>{{1}, {7}, {64}, {129}, {1, 50, 0, 16, 64, 1, 33}}) {
      const SegmentCase c(3, head_dim, lengths, 11);
      EXPECT_LT(c.error(c.run(GetParam(), 2)), 6e-6)
          << "heads of " << head_dim << ", " << lengths.size() << " segments, first " << lengths[0];
    }
  }
}

TEST_P(SegmentAttentionTest, ThreadsGiveTheSameBits) {
  const SegmentCase c(3, 64, {150, 20}, 12);
  const std::vector<float> one = c.run(GetParam(), 1);
  for (const int threads : {2, 3, 7, 16}) {
    const std::vector<float> many = c.run(GetParam(), threads);
    EXPECT_EQ(0, std::memcmp(one.data(), many.data(), one.size() * sizeof(float))) << threads;
  }
}

TEST_P(SegmentAttentionTest, ASegmentInABatchGivesTheBitsOfItAlone) {
  const SegmentCase batch(2, 72, {33, 100, 1, 64}, 13);
  const std::vector<float> together = batch.run(GetParam(), 2);
  for (size_t s = 0; s + 1 < batch.starts.size(); ++s) {
    const int64_t n = batch.starts[s + 1] - batch.starts[s];
    SegmentCase alone(2, 72, {n}, 1);
    const auto first = batch.rows.begin() + batch.starts[s] * batch.ld();
    alone.rows.assign(first, first + n * batch.ld());
    const std::vector<float> out = alone.run(GetParam(), 1);
    EXPECT_EQ(
        0, std::memcmp(out.data(), &together[static_cast<size_t>(batch.starts[s] * batch.width())],
                       out.size() * sizeof(float)))
        << "segment " << s;
  }
}

TEST_P(SegmentAttentionTest, NothingToDo) {
  const SegmentCase empty(2, 64, {0}, 1);
  EXPECT_TRUE(empty.run(GetParam(), 2).empty());
}

}  // namespace
}  // namespace triptych
