#include "sched/kv_pages.h"

#include <gtest/gtest.h>

namespace triptych {
namespace {

// 20 rows of text, a span of 40, 5 rows of text, a span of 16 right behind them, then text.
SequenceState mixed() {
  SequenceState s;
  s.n_tokens = s.n_prompt = 100;
  s.media = {{.position = 20, .length = 40}, {.position = 65, .length = 16}};
  return s;
}

TEST(KvPages, SpansStartOnABoundaryAndOwnTheirPages) {
  const SequenceState s = mixed();
  EXPECT_EQ(kv_pages_for_rows(s, 0, 16), 0);
  EXPECT_EQ(kv_pages_for_rows(s, 20, 16), 2);
  EXPECT_EQ(kv_pages_for_rows(s, 21, 16), 3);
  EXPECT_EQ(kv_pages_for_rows(s, 60, 16), 5);
  EXPECT_EQ(kv_pages_for_rows(s, 61, 16), 6);
  EXPECT_EQ(kv_pages_for_rows(s, 65, 16), 6);
  EXPECT_EQ(kv_pages_for_rows(s, 81, 16), 7);
  EXPECT_EQ(kv_pages_for_rows(s, 82, 16), 8);
  EXPECT_EQ(kv_pages_for_rows(s, 98, 16), 9);
}

TEST(KvPages, ToAddCountsHeldPagesAndCopies) {
  SequenceState s = mixed();
  s.n_cached = 20;
  s.n_pages_held = 2;
  EXPECT_EQ(kv_pages_to_add(s, 0, 16), 0);
  EXPECT_EQ(kv_pages_to_add(s, 1, 16), 1);
  EXPECT_EQ(kv_pages_to_add(s, 40, 16), 3);
  s.n_copy_pages = 1;
  EXPECT_EQ(kv_pages_to_add(s, 40, 16), 4);
}

TEST(KvPages, RowsWithinPagesIsTheLargestThatFits) {
  SequenceState s = mixed();
  for (int64_t cached = 0; cached < 100; cached += 7) {
    s.n_cached = cached;
    s.n_pages_held = kv_pages_for_rows(s, cached, 16);
    for (int64_t pages = 0; pages < 8; ++pages) {
      const int64_t most = s.pending_rows();
      const int64_t n = rows_within_pages(s, most, pages, 16);
      EXPECT_LE(kv_pages_to_add(s, n, 16), pages);
      EXPECT_TRUE(n == most || kv_pages_to_add(s, n + 1, 16) > pages);
    }
  }
}

}  // namespace
}  // namespace triptych
