#include "ops/attention.h"

#include <gmock/gmock.h>

#include "ops/test_ops_fixture.h"

namespace triptych {
namespace {

using testing::HasSubstr;

class AttentionOpsTest : public OpsTest {
 protected:
  std::byte page_[64] = {};
  int32_t pages_[4] = {};
  SequenceRows rows_{.row = 0, .n_rows = 3, .kv_len = 20, .pages = pages_};

  KvLayer cache(int64_t n_kv_heads = 2, int64_t head_dim = 64, DType dtype = DType::kBF16) {
    return {dtype, n_kv_heads, head_dim, page_, KvLayer::page_bytes(dtype, n_kv_heads, head_dim)};
  }
  PagedAttentionArgs paged(int64_t n_heads, const KvLayer& layer) {
    return {.q = nullptr,
            .ldq = 0,
            .n_heads = n_heads,
            .cache = layer,
            .sequences = &rows_,
            .n_sequences = 1,
            .scale = 1,
            .out = nullptr,
            .ldo = 0};
  }
  KvWriteArgs write(const KvLayer& layer) { return {nullptr, 0, nullptr, 0, layer, &rows_, 1}; }
  SegmentAttentionArgs segments(const std::vector<int32_t>& starts, int64_t head_dim) {
    return {.q = nullptr,
            .k = nullptr,
            .v = nullptr,
            .ld = 0,
            .n_heads = 2,
            .head_dim = head_dim,
            .segment_starts = starts.data(),
            .n_segments = static_cast<int64_t>(starts.size()) - 1,
            .scale = 1,
            .out = nullptr,
            .ldo = 0,
            .scratch = nullptr};
  }
};

TEST_F(AttentionOpsTest, GoodCallsReachTheKernel) {
  EXPECT_TRUE(paged_attention(ctx_, paged(6, cache())).is_ok());
  EXPECT_TRUE(kv_write(ctx_, write(cache())).is_ok());
  const std::vector<int32_t> starts{0, 5, 5, 9};
  EXPECT_TRUE(segment_attention(ctx_, segments(starts, 72)).is_ok());
  EXPECT_EQ(calls_, 3);
  EXPECT_EQ(arena_.used(), 0u) << "scratch is given back";
  EXPECT_GT(arena_.high_water(), 0u);
}

TEST_F(AttentionOpsTest, HeadsThatDoNotDivideAreOurBug) {
  const Status s = paged_attention(ctx_, paged(7, cache()));
  EXPECT_EQ(s.code(), StatusCode::kInternal);
  EXPECT_THAT(s.message(), HasSubstr("7 query heads over 2 KV heads"));
  EXPECT_FALSE(paged_attention(ctx_, paged(6, cache(0))).is_ok());
  EXPECT_FALSE(paged_attention(ctx_, paged(0, cache())).is_ok());
  EXPECT_EQ(calls_, 0);
}

TEST_F(AttentionOpsTest, LongHeadsAndOtherCachesAreUnsupported) {
  EXPECT_EQ(paged_attention(ctx_, paged(2, cache(2, 257))).code(), StatusCode::kUnsupported);
  EXPECT_EQ(kv_write(ctx_, write(cache(2, 512))).code(), StatusCode::kUnsupported);
  const Status s = kv_write(ctx_, write(cache(2, 64, DType::kI8)));
  EXPECT_EQ(s.code(), StatusCode::kUnsupported);
  EXPECT_THAT(s.message(), HasSubstr("i8"));
  const std::vector<int32_t> starts{0, 5};
  EXPECT_EQ(segment_attention(ctx_, segments(starts, 300)).code(), StatusCode::kUnsupported);
  EXPECT_EQ(calls_, 0);
}

TEST_F(AttentionOpsTest, SequencesMustMakeSense) {
  rows_.kv_len = 2;  // fewer tokens than new rows
  EXPECT_EQ(paged_attention(ctx_, paged(6, cache())).code(), StatusCode::kInternal);
  EXPECT_EQ(kv_write(ctx_, write(cache())).code(), StatusCode::kInternal);
  rows_ = {.row = 0, .n_rows = 1, .kv_len = 1, .pages = nullptr};
  EXPECT_FALSE(kv_write(ctx_, write(cache())).is_ok());
  PagedAttentionArgs args = paged(6, cache());
  rows_.pages = pages_;
  args.window = -1;
  EXPECT_FALSE(paged_attention(ctx_, args).is_ok());
  EXPECT_EQ(calls_, 0);
}

TEST_F(AttentionOpsTest, PagesHoldOneToSixteenTokens) {
  rows_.kv_len = 30;
  // Behind kv_len nothing is looked at: the table may be longer than what is cached.
  for (const std::vector<int32_t>& good :
       std::vector<std::vector<int32_t>>{{0, 16, 30}, {0, 1, 17, 32, 7}, {0, 10, 20, 29, 45}}) {
    rows_.page_begin = good.data();
    EXPECT_TRUE(paged_attention(ctx_, paged(6, cache())).is_ok());
    EXPECT_TRUE(kv_write(ctx_, write(cache())).is_ok());
  }
  EXPECT_EQ(calls_, 6);
  for (const std::vector<int32_t>& bad : std::vector<std::vector<int32_t>>{
           {1, 17, 30}, {0, 17, 30}, {0, 5, 5, 21, 30}, {0, 16, 10, 30}, {0, 16, INT32_MIN}}) {
    rows_.page_begin = bad.data();
    EXPECT_EQ(paged_attention(ctx_, paged(6, cache())).code(), StatusCode::kInternal);
    EXPECT_EQ(kv_write(ctx_, write(cache())).code(), StatusCode::kInternal);
  }
  EXPECT_EQ(calls_, 6);
  const std::vector<int32_t> long_page{0, 16, 40};
  rows_.page_begin = long_page.data();
  const Status s = kv_write(ctx_, write(cache()));
  EXPECT_THAT(s.message(), HasSubstr("page 1 holds 24 tokens, expected 1 to 16"));
}

TEST_F(AttentionOpsTest, SegmentStartsMustAscendFromZero) {
  for (const std::vector<int32_t>& starts :
       std::vector<std::vector<int32_t>>{{1, 5}, {0, 5, 3}, {0, -1}}) {
    EXPECT_EQ(segment_attention(ctx_, segments(starts, 64)).code(), StatusCode::kInternal);
  }
  const std::vector<int32_t> none{0};
  EXPECT_TRUE(segment_attention(ctx_, segments(none, 64)).is_ok());
  EXPECT_EQ(calls_, 0);
}

TEST_F(AttentionOpsTest, TooLittleScratchIsAnError) {
  const std::vector<int32_t> starts{0, 100000};
  EXPECT_EQ(segment_attention(ctx_, segments(starts, 64)).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(calls_, 0);
}

TEST(KvLayer, PageLayout) {
  EXPECT_EQ(KvLayer::page_bytes(DType::kBF16, 3, 64), 2 * 3 * 64 * 16 * 2);
  const KvLayer layer{DType::kF32, 3, 64, nullptr, 0};
  EXPECT_EQ(layer.v_offset(), KvLayer::page_bytes(DType::kF32, 3, 64) / 2);
}

TEST(AttentionCost, CountsPairsAndCacheReads) {
  const OpCost cost = attention_cost(100, 9, 3, 64, 50, DType::kBF16);
  EXPECT_EQ(cost.flops, 4.0 * 100 * 9 * 64);
  EXPECT_EQ(cost.bytes, 2.0 * 50 * 3 * 64 * 2);
}

}  // namespace
}  // namespace triptych
