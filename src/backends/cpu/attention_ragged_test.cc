// kv_write and paged_attention over pages that are partly filled, at every level of this machine.
#include <gtest/gtest.h>

#include <random>

#include "backends/cpu/page_slots.h"
#include "backends/cpu/test_paged_case.h"

namespace triptych {
namespace {

using Layout = std::vector<int32_t>;

/// Text and media in turn, each from a page boundary, of random lengths: page_begin of n tokens.
Layout random_layout(int64_t n, uint32_t seed, int64_t longest_run = 70) {
  std::mt19937 random(seed);
  Layout begin{0};
  for (int64_t left = n; left > 0;) {
    int64_t run = std::uniform_int_distribution<int64_t>(1, std::min(left, longest_run))(random);
    left -= run;
    for (; run > 0; run -= kPageTokens) {
      begin.push_back(begin.back() + static_cast<int32_t>(std::min(run, kPageTokens)));
    }
  }
  return begin;
}

class RaggedAttentionTest : public testing::TestWithParam<CpuIsa> {
 protected:
  /// Whether `part`, rows of tokens from `first` on, are the bits of those in `whole`.
  static bool same_bits(const PagedCase& c, const std::vector<float>& whole, int64_t first,
                        const std::vector<float>& part) {
    return std::memcmp(part.data(), &whole[static_cast<size_t>(first * c.q_width())],
                       part.size() * sizeof(float)) == 0;
  }
};

INSTANTIATE_TEST_SUITE_P(Levels, RaggedAttentionTest, testing::ValuesIn(available_cpu_isas()),
                         [](const auto& level) { return std::string(cpu_isa_name(level.param)); });

TEST_P(RaggedAttentionTest, MatchesTheReference) {
  const Shape4 shapes[] = {
      {.dtype = DType::kF32, .n_heads = 4, .n_kv_heads = 4, .head_dim = 64},
      {.dtype = DType::kF32, .n_heads = 3, .n_kv_heads = 1, .head_dim = 33},
      {.dtype = DType::kBF16, .n_heads = 9, .n_kv_heads = 3, .head_dim = 64},
      {.dtype = DType::kF16, .n_heads = 2, .n_kv_heads = 2, .head_dim = 80},
  };
  uint32_t seed = 1;
  for (const Shape4& shape : shapes) {
    for (const int64_t n : {1, 16, 17, 65, 150, 260}) {
      for (const int64_t longest : {3, 40, 200}) {
        PagedCase c = PagedCase::with_layouts(shape, {random_layout(n, seed++, longest)});
        const std::vector<float> out = c.run(0, 0, n, GetParam(), 2);
        EXPECT_LT(c.error(0, 0, n, out.data()), 6e-6)
            << dtype_name(shape.dtype) << " heads of " << shape.head_dim << ", " << n
            << " tokens, seed " << seed - 1;
      }
    }
  }
}

// Windows count positions and begin and end within partly filled pages.
TEST_P(RaggedAttentionTest, SlidingWindow) {
  const DType dtypes[] = {DType::kF32, DType::kBF16, DType::kF16};
  uint32_t seed = 100;
  for (const int64_t window : {1, 3, 15, 17, 40, 64, 100, 1000}) {
    const DType dtype = dtypes[seed % 3];
    PagedCase c = PagedCase::with_layouts(
        {.dtype = dtype, .n_heads = 6, .n_kv_heads = 2, .head_dim = 48, .window = window},
        {random_layout(180, seed++, 30)});
    const std::vector<float> whole = c.run(0, 0, 180, GetParam(), 2);
    EXPECT_LT(c.error(0, 0, 180, whole.data()), 6e-6) << window;
    for (int64_t t = 0; t < 180; ++t) {
      ASSERT_TRUE(same_bits(c, whole, t, c.run(0, t, t + 1, GetParam(), 1)))
          << dtype_name(dtype) << ", window " << window << ", token " << t;
    }
  }
}

TEST_P(RaggedAttentionTest, ChunksGiveTheSameBits) {
  uint32_t seed = 200;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    PagedCase c =
        PagedCase::with_layouts({.dtype = dtype, .n_heads = 9, .n_kv_heads = 3, .head_dim = 40},
                                {random_layout(300, seed++)});
    const std::vector<float> whole = c.run(0, 0, 300, GetParam(), 1);
    c.cut_tables();
    for (const int64_t chunk : {128, 64, 50, 7, 1}) {
      c.reset_cache();
      for (int64_t t = 0; t < 300; t += chunk) {
        const int64_t end = std::min<int64_t>(300, t + chunk);
        ASSERT_TRUE(same_bits(c, whole, t, c.run(0, t, end, GetParam(), 3)))
            << dtype_name(dtype) << ", chunks of " << chunk << ", token " << t;
      }
    }
  }
}

TEST_P(RaggedAttentionTest, ABatchOfSequencesGivesTheBitsOfEachAlone) {
  const std::vector<Layout> layouts{
      random_layout(100, 1, 20), random_layout(17, 2),     Layout{0, 1},
      Layout{0, 16, 32, 48, 64}, random_layout(250, 3, 5), random_layout(90, 4, 90)};
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    PagedCase c = PagedCase::with_layouts(
        {.dtype = dtype, .n_heads = 6, .n_kv_heads = 2, .head_dim = 64}, layouts);
    std::vector<std::vector<float>> alone;
    for (size_t i = 0; i < layouts.size(); ++i) {
      alone.push_back(c.run(i, 0, layouts[i].back(), GetParam(), 2));
    }
    const std::vector<PagedCase::Part> parts{{0, 99, 100}, {1, 0, 17},    {2, 0, 1},
                                             {3, 30, 64},  {4, 249, 250}, {5, 11, 77}};
    for (const int threads : {1, 2, 5}) {
      const std::vector<float> batch = c.run_batch(parts, GetParam(), threads);
      auto row = batch.begin();
      for (const auto& part : parts) {
        const auto end = row + (part.end - part.begin) * c.q_width();
        EXPECT_TRUE(same_bits(c, alone[part.sequence], part.begin, {row, end}))
            << "sequence " << part.sequence << ", " << threads << " threads";
        row = end;
      }
    }
  }
}

TEST_P(RaggedAttentionTest, SequencesThatShareTheirFirstPagesGiveTheBitsOfEachAlone) {
  // Text, a picture from a page boundary on, and text behind it that differs.
  const Layout start{0, 16, 21, 37, 53, 69, 85, 101, 117, 133, 140};
  std::vector<Layout> layouts;
  for (const int32_t n : {9, 3, 40, 16, 1}) {
    layouts.push_back(start);
    for (int32_t left = n; left > 0; left -= 16) {
      layouts.back().push_back(layouts.back().back() + std::min(left, 16));
    }
  }
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const int64_t window : {0, 50}) {
      PagedCase c = PagedCase::with_layouts(
          {.dtype = dtype, .n_heads = 6, .n_kv_heads = 2, .head_dim = 64, .window = window},
          layouts);
      std::vector<PagedCase::Part> parts;
      std::vector<std::vector<float>> alone;
      for (size_t i = 0; i < layouts.size(); ++i) {
        if (i > 0) c.share_pages(i, 0, static_cast<int64_t>(start.size()) - 1);
        parts.push_back({i, layouts[i].back() - 1, layouts[i].back()});
        alone.push_back(c.run(i, 0, layouts[i].back(), GetParam(), 2));
      }
      for (const int threads : {1, 2, 5}) {
        const std::vector<float> batch = c.run_batch(parts, GetParam(), threads);
        auto row = batch.begin();
        for (const auto& part : parts) {
          EXPECT_TRUE(same_bits(c, alone[part.sequence], part.begin, {row, row + c.q_width()}))
              << dtype_name(dtype) << ", window " << window << ", sequence " << part.sequence
              << ", " << threads << " threads";
          row += c.q_width();
        }
      }
    }
  }
}

TEST_P(RaggedAttentionTest, WhatEmptySlotsHoldDoesNotMatter) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const int64_t window : {0, 21}) {
      PagedCase c = PagedCase::with_layouts(
          {.dtype = dtype, .n_heads = 4, .n_kv_heads = 2, .head_dim = 64, .window = window},
          {random_layout(140, 5, 12)});
      const std::vector<float> with_nan = c.run(0, 0, 140, GetParam(), 1);
      for (const int byte : {0, 0x7b, 0x42}) {  // zeros; huge; near one
        c.reset_cache(byte);
        EXPECT_TRUE(same_bits(c, with_nan, 0, c.run(0, 0, 140, GetParam(), 1)))
            << dtype_name(dtype) << ", window " << window << ", bytes of " << byte;
      }
    }
  }
}

TEST_P(RaggedAttentionTest, FullPagesGiveTheBitsOfNoTable) {
  for (const int64_t window : {0, 50}) {
    const Shape4 shape{.dtype = DType::kBF16, .n_heads = 6, .n_kv_heads = 2, .window = window};
    Layout begin{0};
    while (begin.back() < 201) begin.push_back(std::min(201, begin.back() + 16));
    PagedCase full = PagedCase::with_layouts(shape, {begin});
    PagedCase without(shape, {201});
    const std::vector<float> want = without.run(0, 0, 201, GetParam(), 2);
    EXPECT_TRUE(same_bits(full, want, 0, full.run(0, 0, 201, GetParam(), 2)));
    EXPECT_TRUE(same_bits(full, want, 200, full.run(0, 200, 201, GetParam(), 2)));
  }
}

TEST_P(RaggedAttentionTest, KvWriteTouchesOnlyItsSlots) {
  KernelTable table;
  fill_cpu_ops(table, GetParam());
  ThreadPool pool(2);
  constexpr int64_t kDim = 5;
  const int64_t page_floats = KvLayer::page_bytes(DType::kF32, 1, kDim) / 4;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Layout begin = random_layout(120, seed, seed % 2 == 0 ? 3 : 40);
    const auto n_pages = static_cast<int64_t>(begin.size()) - 1;
    std::vector<int32_t> pages;
    for (int64_t p = n_pages; p-- > 0;) pages.push_back(static_cast<int32_t>(p));
    std::vector<float> memory(static_cast<size_t>(n_pages * page_floats), -1.0f);
    std::vector<float> want = memory;
    const KvLayer cache{DType::kF32, 1, kDim, reinterpret_cast<std::byte*>(memory.data()),
                        page_floats * 4};
    const int64_t n_rows = 1 + 5 * static_cast<int64_t>(seed);
    const SequenceRows rows{.row = 0,
                            .n_rows = n_rows,
                            .kv_len = 120 - seed,
                            .pages = pages.data(),
                            .page_begin = begin.data()};
    const std::vector<float> k = ref::random_floats(n_rows * kDim, 7);
    const std::vector<float> v = ref::random_floats(n_rows * kDim, 8);
    table.kv_write({k.data(), kDim, v.data(), kDim, cache, &rows, 1}, {&pool, nullptr});
    for (int64_t t = 0; t < n_rows; ++t) {
      const ref::TokenPlace place = ref::place_of(begin, rows.kv_len - n_rows + t);
      const int64_t page = pages[static_cast<size_t>(place.page)] * page_floats;
      for (int64_t d = 0; d < kDim; ++d) {
        const auto from = static_cast<size_t>(t * kDim + d);
        want[static_cast<size_t>(page + d * 16 + place.slot)] = k[from];
        want[static_cast<size_t>(page + page_floats / 2 + place.slot * kDim + d)] = v[from];
      }
    }
    EXPECT_EQ(want, memory) << "seed " << seed;
  }
}

TEST(PageCursor, FindsPagesAndSlotsFromAnyStart) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    const int64_t n = 1 + 37 * static_cast<int64_t>(seed);
    const Layout begin = random_layout(n, seed, seed % 3 == 0 ? 1 : 60);
    for (int64_t first = 0; first < n; first += 7) {
      PageCursor cursor(begin.data());
      for (int64_t position = first; position < n; position += 1 + first % 5) {
        const ref::TokenPlace want = ref::place_of(begin, position);
        ASSERT_EQ(cursor.page_of(position), want.page);
        ASSERT_EQ(cursor.slot_of(position), want.page * kPageTokens + want.slot);
      }
    }
  }
  PageCursor full(nullptr);
  EXPECT_EQ(full.page_of(100), 6);
  EXPECT_EQ(full.slot_of(100), 100);
}

}  // namespace
}  // namespace triptych
