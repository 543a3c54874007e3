#include "server/quota.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace triptych {
namespace {

using testing::HasSubstr;

Caller caller(KeyLimits limits, uint32_t tenant = 1) {
  return {.name = "ann", .tenant = tenant, .limits = limits};
}

TEST(Quota, WithoutLimitsEverybodyComesIn) {
  QuotaBook book;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(book.enter(caller({}), 0).ticket);
}

TEST(Quota, RequestsAMinute) {
  QuotaBook book;
  const Caller ann = caller({.requests_per_min = 60});
  for (int i = 0; i < 60; ++i) EXPECT_TRUE(book.enter(ann, 1000).ticket) << "a whole minute's";
  const QuotaBook::Entry refused = book.enter(ann, 1000);
  ASSERT_TRUE(refused.refusal);
  EXPECT_THAT(refused.refusal->reason, HasSubstr("60 requests a minute"));
  EXPECT_EQ(refused.refusal->retry_ms, 1000);
  EXPECT_FALSE(book.enter(ann, 1999).ticket) << "just under";
  EXPECT_TRUE(book.enter(ann, 2000).ticket) << "the time that was told is enough";
  EXPECT_FALSE(book.enter(ann, 2000).ticket);
  EXPECT_TRUE(book.enter(caller({.requests_per_min = 1}, 2), 2000).ticket) << "others' are theirs";
}

TEST(Quota, RequestsAtOnce) {
  QuotaBook book;
  const Caller ann = caller({.requests_at_once = 2});
  auto first = book.enter(ann, 0).ticket;
  const auto second = book.enter(ann, 0).ticket;
  EXPECT_TRUE(first && second);
  EXPECT_THAT(book.enter(ann, 0).refusal->reason, HasSubstr("2 requests in work"));
  first.reset();
  EXPECT_TRUE(book.enter(ann, 0).ticket);
}

TEST(Quota, TokensAreCountedAtTheEndAndOwedUntilThen) {
  QuotaBook book;
  const Caller ann = caller({.tokens_per_min = 600});
  const auto ticket = book.enter(ann, 0).ticket;
  ticket->spend_tokens(599, 0);
  EXPECT_TRUE(book.enter(ann, 0).ticket) << "one is left";
  ticket->spend_tokens(101, 0);  // 100 more than there were
  const QuotaBook::Entry refused = book.enter(ann, 0);
  ASSERT_TRUE(refused.refusal);
  EXPECT_EQ(refused.refusal->retry_ms, 10100);
  EXPECT_FALSE(book.enter(ann, 10099).ticket);
  EXPECT_TRUE(book.enter(ann, 10100).ticket);
}

TEST(Quota, BytesOfMediaAMinute) {
  QuotaBook book;
  const Caller ann = caller({.media_bytes_per_min = 6000});
  const auto ticket = book.enter(ann, 0).ticket;
  EXPECT_TRUE(ticket->take_media(6000, 0).is_ok());
  const Status refused = ticket->take_media(100, 0);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("try again in 1000 ms"));
  EXPECT_FALSE(ticket->take_media(100, 999).is_ok());
  EXPECT_TRUE(ticket->take_media(100, 1000).is_ok());
  EXPECT_TRUE(ticket->take_media(0, 1000).is_ok());
}

}  // namespace
}  // namespace triptych
