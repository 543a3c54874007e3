#include "sched/chunking.h"

#include <gtest/gtest.h>

namespace triptych {
namespace {

SequenceState with_span(int64_t position, int64_t length, int64_t n_tokens) {
  SequenceState s;
  s.n_tokens = s.n_prompt = n_tokens;
  s.media = {{.position = position, .length = length}};
  return s;
}

TEST(Chunking, EndsInTextOrBehindWholeSpans) {
  SequenceState s = with_span(10, 50, 100);
  EXPECT_EQ(legal_chunk(s, 5, 64), 5);
  EXPECT_EQ(legal_chunk(s, 10, 64), 10);
  EXPECT_EQ(legal_chunk(s, 30, 64), 10);
  EXPECT_EQ(legal_chunk(s, 60, 64), 60);
  EXPECT_EQ(legal_chunk(s, 64, 64), 64);
  s.n_cached = 10;
  EXPECT_EQ(legal_chunk(s, 49, 64), 0);
  EXPECT_EQ(legal_chunk(s, 50, 64), 50);
  EXPECT_EQ(smallest_chunk(s, 64), 50);
  s.n_cached = 60;
  EXPECT_EQ(smallest_chunk(s, 64), 1);
}

TEST(Chunking, CutsASpanThatIsLongerThanAChunk) {
  SequenceState s = with_span(10, 65, 100);
  EXPECT_EQ(legal_chunk(s, 30, 64), 30);
  s.n_cached = 30;
  EXPECT_EQ(legal_chunk(s, 7, 64), 7);
  EXPECT_EQ(smallest_chunk(s, 64), 1);
}

TEST(Chunking, RowsWaitForTheirFeatures) {
  SequenceState s = with_span(10, 50, 100);
  const auto none = [](const MediaState&) { return false; };
  const auto all = [](const MediaState&) { return true; };
  EXPECT_EQ(ready_rows(s, none), 10);
  EXPECT_EQ(ready_rows(s, all), 100);
  s.n_cached = 10;
  EXPECT_EQ(ready_rows(s, none), 0);
  s.n_cached = 60;
  EXPECT_EQ(ready_rows(s, none), 40);
}

}  // namespace
}  // namespace triptych
