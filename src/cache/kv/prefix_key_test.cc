#include "cache/kv/prefix_key.h"

#include <gtest/gtest.h>

#include <set>

#include "cache/test_kv_fixture.h"

namespace triptych {
namespace {

using test::counting;
using test::layout_of;
using test::media_id;

PrefixChain chain_of(const PageLayout& layout, const std::vector<int32_t>& ids,
                     const std::vector<MediaId>& kept = {},
                     const PrefixScope& scope = {"model", "tenant"}) {
  PrefixChain chain(root_key(scope));
  const Status status = chain.extend(layout, ids, kept);
  EXPECT_TRUE(status.is_ok()) << status.message();
  return chain;
}

TEST(PrefixKey, OnlyClosedPagesHaveOne) {
  EXPECT_EQ(chain_of(layout_of(47), counting(0, 47)).size(), 2);
  EXPECT_EQ(chain_of(layout_of(48), counting(0, 48)).size(), 3);
  // The text in front of a picture is closed by it, and the picture's last page by its end.
  const PageLayout layout = layout_of(30, {{.position = 5, .length = 18}});
  EXPECT_EQ(chain_of(layout, counting(0, 30), {media_id(1)}).size(), 3);
}

TEST(PrefixKey, GrowsAsTheSequenceDoes) {
  PageLayout layout = layout_of(20, {{.position = 0, .length = 3}});
  std::vector<int32_t> ids = counting(7, 20);
  const std::vector<MediaId> kept = {media_id(1)};
  PrefixChain chain = chain_of(layout, ids, kept);
  for (int i = 0; i < 40; ++i) {
    ids.push_back(100 + i);
    ASSERT_TRUE(layout.extend(1).is_ok());
    ASSERT_TRUE(chain.extend(layout, ids, kept).is_ok());
  }
  const PrefixChain at_once = chain_of(layout, ids, kept);
  ASSERT_EQ(chain.size(), at_once.size());
  for (int64_t i = 0; i < chain.size(); ++i) EXPECT_EQ(chain.key(i), at_once.key(i));
}

TEST(PrefixKey, CoversEverythingInFront) {
  const PageLayout layout = layout_of(48);
  std::vector<int32_t> ids = counting(0, 48);
  const PrefixChain one = chain_of(layout, ids);
  ids[17] = 1000;
  const PrefixChain other = chain_of(layout, ids);
  EXPECT_EQ(one.key(0), other.key(0));
  EXPECT_NE(one.key(1), other.key(1));
  EXPECT_NE(one.key(2), other.key(2));
}

TEST(PrefixKey, TellsTenantsAndModelsApart) {
  const PageLayout layout = layout_of(16);
  const std::vector<int32_t> ids = counting(0, 16);
  std::set<PrefixKey> keys;
  // The second and third would be the same bytes without frames.
  const std::vector<PrefixScope> scopes = {{"m", "t"}, {"mt", ""}, {"", "mt"}, {"m", "u"}};
  for (const PrefixScope& scope : scopes) keys.insert(chain_of(layout, ids, {}, scope).key(0));
  EXPECT_EQ(keys.size(), scopes.size());
}

TEST(PrefixKey, TheSameTokensWithAnotherPictureAreAnotherPrefix) {
  const PageLayout layout = layout_of(40, {{.position = 4, .length = 20}});
  const std::vector<int32_t> ids(40, 9);
  const PrefixChain red = chain_of(layout, ids, {media_id(1)});
  const PrefixChain blue = chain_of(layout, ids, {media_id(2)});
  EXPECT_EQ(red.key(0), blue.key(0));
  EXPECT_NE(red.key(1), blue.key(1));
  EXPECT_NE(red.key(3), blue.key(3));
}

TEST(PrefixKey, OrderOfFramesCounts) {
  const PageLayout layout =
      layout_of(40, {{.position = 4, .length = 16}, {.position = 20, .length = 16}});
  const std::vector<int32_t> ids(40, 9);
  const PrefixChain forth = chain_of(layout, ids, {media_id(1), media_id(2)});
  const PrefixChain back = chain_of(layout, ids, {media_id(2), media_id(1)});
  EXPECT_NE(forth.key(1), back.key(1));
  EXPECT_NE(forth.key(2), back.key(2));
}

TEST(PrefixKey, KindsOfPagesCannotBeTakenForEachOther) {
  const PrefixKey parent = root_key({"m", "t"});
  const MediaId id = media_id(3);
  // Ids that spell what a media page hashes: id, index and rows with their frames.
  std::vector<int32_t> spelled(32 / 4 + 4, 0);
  std::copy_n(id.begin(), id.size(), reinterpret_cast<uint8_t*>(spelled.data()));
  const std::set<PrefixKey> keys = {media_page_key(parent, id, 0, 16),
                                    media_page_key(parent, id, 16, 0),
                                    media_page_key(parent, id, 0, 15),
                                    media_page_key(parent, id, 1, 16),
                                    text_page_key(parent, spelled),
                                    text_page_key(parent, {}),
                                    text_page_key(text_page_key(parent, {}), spelled),
                                    parent};
  EXPECT_EQ(keys.size(), 8u);
}

TEST(PrefixKey, NearCollisionsOfTextAllDiffer) {
  const PrefixKey parent = root_key({"m", "t"});
  std::set<PrefixKey> keys;
  size_t n = 0;
  for (int32_t a = 0; a < 12; ++a) {
    for (size_t length = 0; length <= 16; ++length) {  // 1, 11, 111, ... and with a zero behind
      std::vector<int32_t> ids(length, a);
      keys.insert(text_page_key(parent, ids));
      ids.push_back(0);
      keys.insert(text_page_key(parent, ids));
      n += length == 0 && a > 0 ? 0 : 2;  // nothing and a lone zero are there for a = 0
    }
  }
  EXPECT_EQ(keys.size(), n - 16);  // for a = 0 the zero behind is the next longer list, but for 17
}

TEST(PrefixKey, SizesThatDisagreeAreOurFault) {
  const PageLayout layout = layout_of(30, {{.position = 5, .length = 18}});
  PrefixChain chain(root_key({"m", "t"}));
  EXPECT_EQ(chain.extend(layout, counting(0, 29), {}).code(), StatusCode::kInternal);
  EXPECT_EQ(chain.extend(layout, counting(0, 30), {}).code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace triptych
