// kv_write and paged_attention against a float64 reference, at every level of this machine.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/cpu/test_paged_case.h"

namespace triptych {
namespace {

using ref::random_floats;

class PagedAttentionTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Levels, PagedAttentionTest, testing::ValuesIn(available_cpu_isas()),
                         [](const auto& level) { return std::string(cpu_isa_name(level.param)); });

TEST_P(PagedAttentionTest, MatchesTheReference) {
  const Shape4 shapes[] = {
      {.dtype = DType::kF32, .n_heads = 4, .n_kv_heads = 4, .head_dim = 64},
      {.dtype = DType::kBF16, .n_heads = 9, .n_kv_heads = 3, .head_dim = 64},
      {.dtype = DType::kF16, .n_heads = 14, .n_kv_heads = 2, .head_dim = 64},
      {.dtype = DType::kBF16, .n_heads = 8, .n_kv_heads = 1, .head_dim = 128},
      {.dtype = DType::kF32, .n_heads = 2, .n_kv_heads = 1, .head_dim = 256},
      {.dtype = DType::kF32, .n_heads = 3, .n_kv_heads = 3, .head_dim = 72},
      {.dtype = DType::kF16, .n_heads = 2, .n_kv_heads = 2, .head_dim = 80},
      {.dtype = DType::kBF16, .n_heads = 6, .n_kv_heads = 2, .head_dim = 33},
      {.dtype = DType::kF32, .n_heads = 1, .n_kv_heads = 1, .head_dim = 1},
  };
  for (const Shape4& shape : shapes) {
    for (const int64_t n : {1, 5, 16, 63, 64, 65, 150}) {
      PagedCase c(shape, {n});
      const std::vector<float> out = c.run(0, 0, n, GetParam(), 2);
      EXPECT_LT(c.error(0, 0, n, out.data()), 6e-6)
          << dtype_name(shape.dtype) << " heads " << shape.n_heads << "/" << shape.n_kv_heads
          << " of " << shape.head_dim << ", " << n << " tokens";
    }
  }
}

TEST_P(PagedAttentionTest, MoreQueryHeadsThanATileHolds) {
  PagedCase c({.dtype = DType::kF32, .n_heads = 130, .n_kv_heads = 1, .head_dim = 16}, {21});
  const std::vector<float> out = c.run(0, 0, 21, GetParam(), 2);
  EXPECT_LT(c.error(0, 0, 21, out.data()), 6e-6);
}

TEST_P(PagedAttentionTest, SlidingWindow) {
  for (const int64_t window : {1, 3, 16, 40, 64, 100, 1000}) {
    PagedCase c(
        {.dtype = DType::kBF16, .n_heads = 6, .n_kv_heads = 2, .head_dim = 48, .window = window},
        {210});
    const std::vector<float> whole = c.run(0, 0, 210, GetParam(), 2);
    EXPECT_LT(c.error(0, 0, 210, whole.data()), 6e-6) << window;
    for (int64_t t = 0; t < 210; ++t) {
      const std::vector<float> row = c.run(0, t, t + 1, GetParam(), 1);
      ASSERT_EQ(0, std::memcmp(row.data(), &whole[static_cast<size_t>(t * c.q_width())],
                               row.size() * sizeof(float)))
          << "window " << window << ", token " << t;
    }
  }
}

TEST_P(PagedAttentionTest, ChunksGiveTheSameBits) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    PagedCase c({.dtype = dtype, .n_heads = 9, .n_kv_heads = 3, .head_dim = 40}, {333});
    const std::vector<float> whole = c.run(0, 0, 333, GetParam(), 1);
    for (const int64_t chunk : {128, 64, 50, 7, 1}) {
      c.reset_cache();
      for (int64_t t = 0; t < 333; t += chunk) {
        const int64_t end = std::min<int64_t>(333, t + chunk);
        const std::vector<float> part = c.run(0, t, end, GetParam(), 2);
        ASSERT_EQ(0, std::memcmp(part.data(), &whole[static_cast<size_t>(t * c.q_width())],
                                 part.size() * sizeof(float)))
            << dtype_name(dtype) << ", chunks of " << chunk << ", token " << t;
      }
    }
  }
}

TEST_P(PagedAttentionTest, ThreadsGiveTheSameBits) {
  for (const int64_t n : {1, 30, 200}) {
    PagedCase c({.dtype = DType::kBF16, .n_heads = 7, .n_kv_heads = 1, .head_dim = 64}, {n});
    const std::vector<float> one = c.run(0, 0, n, GetParam(), 1);
    for (const int threads : {2, 3, 8}) {
      const std::vector<float> many = c.run(0, 0, n, GetParam(), threads);
      EXPECT_EQ(0, std::memcmp(one.data(), many.data(), one.size() * sizeof(float))) << threads;
    }
  }
}

TEST_P(PagedAttentionTest, ABatchOfSequencesGivesTheBitsOfEachAlone) {
  const std::vector<int64_t> lengths{100, 17, 1, 64, 250};
  PagedCase c({.dtype = DType::kBF16, .n_heads = 6, .n_kv_heads = 2, .head_dim = 64}, lengths);
  std::vector<std::vector<float>> alone;
  for (size_t i = 0; i < lengths.size(); ++i) {
    alone.push_back(c.run(i, 0, lengths[i], GetParam(), 2));
    EXPECT_LT(c.error(i, 0, lengths[i], alone[i].data()), 6e-6);
  }
  // One decoding, one prefilling whole, the others in between, in one batch.
  const std::vector<PagedCase::Part> parts{
      {0, 99, 100}, {1, 0, 17}, {2, 0, 1}, {3, 30, 64}, {4, 249, 250}};
  const std::vector<float> batch = c.run_batch(parts, GetParam(), 2);
  const float* got = batch.data();
  for (const auto& part : parts) {
    const size_t n = static_cast<size_t>((part.end - part.begin) * c.q_width());
    EXPECT_EQ(0,
              std::memcmp(got, &alone[part.sequence][static_cast<size_t>(part.begin * c.q_width())],
                          n * sizeof(float)))
        << "sequence " << part.sequence;
    got += n;
  }
}

// What neighbours share is read once for all: sixteen pages, four and two of them (less than a
// block), also within windows that begin in the middle, and beside a sequence that shares but
// prefills.
TEST_P(PagedAttentionTest, SequencesThatShareTheirFirstPagesGiveTheBitsOfEachAlone) {
  const std::vector<int64_t> lengths{300, 257, 310, 270, 265, 100, 90, 70, 150, 299};
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const auto& [n_heads, head_dim, window] :
         {std::tuple{6, 64, 0}, std::tuple{2, 64, 100}, std::tuple{8, 40, 33}}) {
      PagedCase c({.dtype = dtype,
                   .n_heads = n_heads,
                   .n_kv_heads = 2,
                   .head_dim = head_dim,
                   .window = window},
                  lengths);
      for (const size_t i : {1, 2, 3, 4, 9}) c.share_pages(i, 0, 16);
      for (const size_t i : {5, 6}) c.share_pages(i, 0, 4);
      c.share_pages(7, 0, 2);
      std::vector<std::vector<float>> alone;
      for (size_t i = 0; i < lengths.size(); ++i) {
        alone.push_back(c.run(i, 0, lengths[i], GetParam(), 2));
      }
      std::vector<PagedCase::Part> parts;
      for (size_t i = 0; i < lengths.size(); ++i) {
        parts.push_back({i, lengths[i] - (i == 3 ? 9 : 1), lengths[i]});
      }
      for (const int threads : {1, 2, 7}) {
        const std::vector<float> batch = c.run_batch(parts, GetParam(), threads);
        const float* got = batch.data();
        for (const auto& part : parts) {
          const size_t n = static_cast<size_t>((part.end - part.begin) * c.q_width());
          EXPECT_LT(c.error(part.sequence, part.begin, part.end, got), 6e-6);
          EXPECT_EQ(
              0,
              std::memcmp(got, &alone[part.sequence][static_cast<size_t>(part.begin * c.q_width())],
                          n * sizeof(float)))
              << dtype_name(dtype) << ", window " << window << ", sequence " << part.sequence
              << ", " << threads << " threads";
          got += n;
        }
      }
    }
  }
}

TEST_P(PagedAttentionTest, LaterTokensOfAChunkNeverReachEarlierOnes) {
  PagedCase c({.dtype = DType::kF16, .n_heads = 2, .n_kv_heads = 1, .head_dim = 64}, {40});
  // Beyond f16: infinity in the cache, which only rows from token 21 on may see.
  for (int64_t d = 0; d < 64; ++d) c.v(0)[static_cast<size_t>(21 * 64 + d)] = 1e6f;
  for (int64_t d = 0; d < 64; ++d) c.k(0)[static_cast<size_t>(30 * 64 + d)] = NAN;
  const std::vector<float> out = c.run(0, 0, 40, GetParam(), 1);
  EXPECT_LT(c.error(0, 0, 21, out.data()), 6e-6);
  const auto at = [&](int64_t t) { return out[static_cast<size_t>(t * c.q_width())]; };
  EXPECT_TRUE(std::isinf(at(21)));
  EXPECT_TRUE(std::isnan(at(30))) << "a NaN among the visible keys must show";
}

TEST_P(PagedAttentionTest, LargeAndEqualScores) {
  PagedCase c({.dtype = DType::kF32, .n_heads = 1, .n_kv_heads = 1, .head_dim = 16}, {130});
  for (float& q : c.q(0)) q *= 100;  // softmax close to one-hot, differences far below e^-87
  std::vector<float> out = c.run(0, 0, 130, GetParam(), 1);
  EXPECT_LT(c.error(0, 0, 130, out.data()), 1e-4);
  for (float& q : c.q(0)) q = 0;  // all scores equal: the mean of the values
  out = c.run(0, 0, 130, GetParam(), 1);
  EXPECT_LT(c.error(0, 0, 130, out.data()), 1e-6);
}

// Two keys with scores 0 and x, values 0 and 1: the output is e^x / (1 + e^x). The scale makes the
// kernel's internal unit (a power of two) exact, so that only its exponential is seen.
TEST_P(PagedAttentionTest, ExponentialIsAccurate) {
  PagedCase c(
      {.dtype = DType::kF32, .n_heads = 1, .n_kv_heads = 1, .head_dim = 1, .scale = 0.693147182f},
      {2});
  c.k(0)[0] = 0;
  c.v(0) = {0, 1};
  c.q(0)[1] = 1;
  double worst = 0;
  for (float x = -124.9f; x <= 0; x += 0.0137f) {
    c.k(0)[1] = x;
    const double got = c.run(0, 0, 2, GetParam(), 1)[1];
    const double e = std::exp2(static_cast<double>(x));
    worst = std::max(worst, std::abs(got / (e / (1 + e)) - 1));
  }
  EXPECT_LT(worst, 2.5e-7);  // 1e-7 of the exponential, the rest of the sum and the division
  c.k(0)[1] = -1e30f;
  EXPECT_EQ(c.run(0, 0, 2, GetParam(), 1)[1], 0);
}

// bf16 and f16 caches round to nearest even, and nothing but the written slots changes.
TEST_P(PagedAttentionTest, KvWriteRoundsAndTouchesOnlyItsSlots) {
  KernelTable table;
  fill_cpu_ops(table, GetParam());
  ThreadPool pool(2);
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    constexpr int64_t kHeads = 2;
    constexpr int64_t kDim = 21;
    constexpr int64_t kWidth = kHeads * kDim;
    const int64_t page_bytes = KvLayer::page_bytes(dtype, kHeads, kDim);
    std::vector<std::byte> memory(static_cast<size_t>(3 * page_bytes), std::byte{0xab});
    const KvLayer cache{dtype, kHeads, kDim, memory.data(), page_bytes};
    const std::vector<int32_t> pages{2, 0};
    std::vector<float> k = random_floats(5 * kWidth, 7);
    std::vector<float> v = random_floats(5 * kWidth, 8);
    // Ties to even, f16 subnormals and overflow, signed zero, infinity.
    const float special[] = {1.00390625f,   1.01171875f,  1.00048828125f, 1.00146484375f, 65519.0f,
                             65520.0f,      -1e30f,       6.1e-5f,        3.1e-7f,        2.98e-8f,
                             2.9802324e-8f, 8.940697e-8f, -0.0f,          INFINITY,       1e-40f};
    std::copy(std::begin(special), std::end(special), v.begin());
    std::copy(std::begin(special), std::end(special), k.begin() + 20);
    const SequenceRows rows{.row = 0, .n_rows = 5, .kv_len = 19, .pages = pages.data()};
    table.kv_write({k.data(), kWidth, v.data(), kWidth, cache, &rows, 1}, {&pool, nullptr});
    const auto round = dtype == DType::kBF16 ? &f32_to_bf16 : &f32_to_f16;
    std::vector<uint16_t> want(memory.size() / 2, 0xabab);
    for (int64_t t = 0; t < 5; ++t) {
      const int64_t position = 14 + t;
      const int64_t page = pages[static_cast<size_t>(position / 16)] * page_bytes / 2;
      for (int64_t h = 0; h < kHeads; ++h) {
        for (int64_t d = 0; d < kDim; ++d) {
          const auto from = static_cast<size_t>(t * kWidth + h * kDim + d);
          want[static_cast<size_t>(page + (h * kDim + d) * 16 + position % 16)] = round(k[from]);
          want[static_cast<size_t>(page + page_bytes / 4 + (h * 16 + position % 16) * kDim + d)] =
              round(v[from]);
        }
      }
    }
    EXPECT_EQ(0, std::memcmp(want.data(), memory.data(), memory.size())) << dtype_name(dtype);
  }
}

}  // namespace
}  // namespace triptych
