#include "cache/kv/sequence_pages.h"

#include <gtest/gtest.h>

#include <cstring>

#include "cache/test_kv_fixture.h"

namespace triptych {
namespace {

using test::counting;
using test::KvParts;
using test::layout_of;
using test::media_id;

void copy_page(std::span<const std::byte> from, std::span<std::byte> to) {
  std::memcpy(to.data(), from.data(), from.size());
}

void store(SequencePages& table, int64_t n_tokens) {
  ASSERT_TRUE(table.reserve(n_tokens).is_ok());
  ASSERT_TRUE(table.commit(n_tokens - table.n_stored()).is_ok());
}

TEST(SequencePages, ReservesChunkByChunkAllOrNothing) {
  KvParts kv(4);
  SequencePages table(kv.index, layout_of(80), kv.root);
  ASSERT_TRUE(table.reserve(20).is_ok());
  EXPECT_EQ(table.pages().size(), 2u);
  EXPECT_EQ(table.n_reserved(), 32);
  EXPECT_EQ(table.commit(33).code(), StatusCode::kInternal);
  ASSERT_TRUE(table.commit(20).is_ok());
  EXPECT_EQ(table.n_pages_missing(80), 3);
  EXPECT_EQ(table.reserve(80).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(table.pages().size(), 2u);
  EXPECT_EQ(table.reserve(81).code(), StatusCode::kInternal);
  ASSERT_TRUE(table.reserve(64).is_ok());
  EXPECT_TRUE(kv.check({&table}).is_ok());
  table.roll_back();
  EXPECT_EQ(table.pages().size(), 2u);
  EXPECT_EQ(kv.pool.n_free(), 2);
}

TEST(SequencePages, PagesReturnWithTheTable) {
  KvParts kv(4);
  {
    SequencePages table(kv.index, layout_of(40), std::nullopt);
    store(table, 40);
    EXPECT_EQ(kv.pool.n_free(), 1);
    SequencePages moved = std::move(table);
    EXPECT_EQ(moved.pages().size(), 3u);
  }
  EXPECT_EQ(kv.pool.n_free(), 4);
}

TEST(SequencePages, TypesItsPages) {
  KvParts kv(4);
  SequencePages table(kv.index, layout_of(30, {{.position = 3, .length = 20}}), kv.root,
                      {media_id(1)});
  ASSERT_TRUE(table.reserve(30).is_ok());
  EXPECT_EQ(kv.pool.type(table.pages()[0]).modality, Modality::kText);
  EXPECT_EQ(kv.pool.type(table.pages()[2]).modality, Modality::kImage);
  EXPECT_EQ(kv.pool.type(table.pages()[3]).modality, Modality::kText);
}

TEST(SequencePages, ASecondSequenceTakesTheFirstOnesPrefix) {
  KvParts kv(16);
  const std::vector<int32_t> ids = counting(0, 40);
  SequencePages first(kv.index, layout_of(40), kv.root);
  EXPECT_EQ(*first.adopt(ids), 0);
  store(first, 40);
  ASSERT_TRUE(first.publish(ids).is_ok());
  EXPECT_EQ(first.n_published(), 2);

  SequencePages second(kv.index, layout_of(40), kv.root);
  EXPECT_EQ(*second.n_cached(ids), 32);
  EXPECT_EQ(*second.adopt(ids), 32);
  EXPECT_EQ(second.n_stored(), 32);
  EXPECT_EQ(second.pages()[1], first.pages()[1]);
  store(second, 40);
  EXPECT_NE(second.pages()[2], first.pages()[2]);
  EXPECT_TRUE(kv.check({&first, &second}).is_ok());

  SequencePages stranger(kv.index, layout_of(40), root_key({"model", "another tenant"}));
  EXPECT_EQ(*stranger.adopt(ids), 0);
  SequencePages uncached(kv.index, layout_of(40), std::nullopt);
  EXPECT_EQ(*uncached.adopt(ids), 0);
}

TEST(SequencePages, TheLastTokenIsAlwaysComputed) {
  KvParts kv(16);
  const std::vector<int32_t> ids = counting(0, 32);
  SequencePages first(kv.index, layout_of(32), kv.root);
  store(first, 32);
  ASSERT_TRUE(first.publish(ids).is_ok());
  SequencePages second(kv.index, layout_of(32), kv.root);
  EXPECT_EQ(*second.adopt(ids), 16);
}

TEST(SequencePages, AMediaRunIsTakenWholeOrNotAtAll) {
  KvParts kv(7);
  const PageLayout layout = layout_of(60, {{.position = 5, .length = 40}});
  const std::vector<int32_t> ids(60, 3);
  {
    SequencePages first(kv.index, layout, kv.root, {media_id(1)});
    store(first, 60);
    ASSERT_TRUE(first.publish(ids).is_ok());
    EXPECT_EQ(first.n_published(), 4);
  }
  // Nobody uses them now. The pages behind the third are evicted: the picture's last one with them.
  ASSERT_EQ(kv.index.evict(1), 1);
  SequencePages second(kv.index, layout, kv.root, {media_id(1)});
  EXPECT_EQ(*second.adopt(ids), 5);
  EXPECT_EQ(second.pages().size(), 1u);
  SequencePages other(kv.index, layout, kv.root, {media_id(2)});
  EXPECT_EQ(*other.adopt(ids), 5);
  EXPECT_TRUE(kv.check({&second, &other}).is_ok());
}

TEST(SequencePages, EqualPromptsComputedTogetherEndUpOnOnePage) {
  KvParts kv(16);
  const std::vector<int32_t> ids = counting(0, 40);
  SequencePages first(kv.index, layout_of(40), kv.root);
  SequencePages second(kv.index, layout_of(40), kv.root);
  store(first, 40);
  store(second, 40);
  EXPECT_EQ(kv.pool.n_free(), 10);
  ASSERT_TRUE(first.publish(ids).is_ok());
  ASSERT_TRUE(second.publish(ids).is_ok());
  EXPECT_EQ(first.pages()[0], second.pages()[0]);
  EXPECT_EQ(kv.pool.n_free(), 12);
  EXPECT_TRUE(kv.check({&first, &second}).is_ok());
}

TEST(SequencePages, AForkSharesClosedPagesAndCopiesTheOpenOne) {
  KvParts kv(16);
  const std::vector<int32_t> ids = counting(0, 37);
  SequencePages first(kv.index, layout_of(37), kv.root);
  store(first, 37);
  kv.pool.bytes(first.pages()[2])[5] = std::byte{42};
  Result<SequencePages> twin = first.fork(copy_page);
  ASSERT_TRUE(twin.is_ok());
  EXPECT_EQ(twin->n_stored(), 37);
  EXPECT_EQ(twin->pages()[1], first.pages()[1]);
  EXPECT_NE(twin->pages()[2], first.pages()[2]);
  EXPECT_EQ(kv.pool.bytes(twin->pages()[2])[5], std::byte{42});
  EXPECT_TRUE(kv.check({&first, &*twin}).is_ok());
  ASSERT_TRUE(first.publish(ids).is_ok());
  ASSERT_TRUE(twin->publish(ids).is_ok());
  EXPECT_TRUE(kv.check({&first, &*twin}).is_ok());
}

TEST(SequencePages, AForkThatDoesNotFitChangesNothing) {
  KvParts kv(3);
  SequencePages first(kv.index, layout_of(37), kv.root);
  store(first, 37);
  EXPECT_EQ(first.fork(copy_page).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(kv.pool.references(first.pages()[0]), 1);
  EXPECT_TRUE(kv.check({&first}).is_ok());
}

TEST(SequencePages, WhatWasPreemptedFindsItsAnswerAgain) {
  KvParts kv(8);
  std::vector<int32_t> ids = counting(0, 20);
  SequencePages table(kv.index, layout_of(20), kv.root);
  store(table, 20);
  for (int32_t i = 0; i < 30; ++i) {  // decode
    ids.push_back(500 + i);
    ASSERT_TRUE(table.extend(1).is_ok());
    store(table, table.n_tokens());
    ASSERT_TRUE(table.publish(ids).is_ok());
  }
  table.release();
  EXPECT_EQ(table.n_tokens(), 50);
  EXPECT_EQ(kv.pool.n_free() + kv.pool.n_reclaimable(), 8);
  EXPECT_EQ(*table.adopt(ids), 48);
  store(table, 50);
  EXPECT_TRUE(kv.check({&table}).is_ok());
}

TEST(SequencePages, StopsPublishingWhenTheIndexWasCleared) {
  KvParts kv(16);
  const std::vector<int32_t> ids = counting(0, 48);
  SequencePages first(kv.index, layout_of(48), kv.root);
  store(first, 32);
  ASSERT_TRUE(first.publish(ids).is_ok());
  kv.index.clear();
  SequencePages second(kv.index, layout_of(48), kv.root);
  store(second, 48);
  ASSERT_TRUE(second.publish(ids).is_ok());
  store(first, 48);
  ASSERT_TRUE(first.publish(ids).is_ok());
  EXPECT_EQ(first.n_published(), 2);
  EXPECT_NE(first.pages()[2], second.pages()[2]);
  EXPECT_TRUE(kv.check({&first, &second}).is_ok());
}

}  // namespace
}  // namespace triptych
