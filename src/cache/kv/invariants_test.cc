#include "cache/kv/invariants.h"

#include <gtest/gtest.h>

#include "cache/test_kv_fixture.h"

namespace triptych {
namespace {

using test::counting;
using test::KvParts;
using test::layout_of;

/// Each test breaks one promise behind the table's back and expects to hear of it.
class Invariants : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(table_.reserve(40).is_ok());
    ASSERT_TRUE(table_.commit(40).is_ok());
    ASSERT_TRUE(table_.publish(counting(0, 40)).is_ok());
    ASSERT_TRUE(kv_.check({&table_}).is_ok());
  }
  void expect_broken(const std::string& why) {
    const Status status = kv_.check({&table_});
    EXPECT_EQ(status.code(), StatusCode::kInternal);
    EXPECT_NE(status.message().find(why), std::string::npos) << status.message();
  }

  KvParts kv_{8};
  SequencePages table_{kv_.index, layout_of(40), kv_.root};
};

TEST_F(Invariants, APageWithAReferenceTooMany) {
  kv_.pool.share(table_.pages()[2]);
  expect_broken("references");
  kv_.pool.drop(table_.pages()[2]);
}

TEST_F(Invariants, APageThatIsFreeAndInATable) {
  kv_.pool.drop(table_.pages()[2]);
  expect_broken("references");
  ASSERT_TRUE(kv_.pool.allocate(1).is_ok());
}

TEST_F(Invariants, APageThatNobodyHolds) {
  const std::vector<int32_t> lost = *kv_.pool.allocate(1);
  expect_broken("references");
  kv_.pool.drop(lost[0]);
}

TEST_F(Invariants, APageOfTheWrongKind) {
  kv_.pool.set_modality(table_.pages()[0], Modality::kVideo);
  expect_broken("typed video");
}

TEST_F(Invariants, APublishedPageThatIsNotMarked) {
  kv_.pool.set_published(table_.pages()[0], false);
  expect_broken("marked");
  kv_.pool.set_published(table_.pages()[0], true);
}

TEST_F(Invariants, AnOpenPageInTwoTables) {
  for (const int32_t page : table_.pages()) kv_.pool.share(page);
  const Status status = kv_.check({&table_, &table_});  // the counts are right
  EXPECT_NE(status.message().find("can be written"), std::string::npos) << status.message();
  for (const int32_t page : table_.pages()) kv_.pool.drop(page);
}

TEST_F(Invariants, ATableThatNobodyNamed) {
  const Status status = check_invariants(kv_.pool, kv_.index, {});
  EXPECT_EQ(status.code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace triptych
