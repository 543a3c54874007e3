// Random requests on a pool that is too small for them: shared prefixes, pictures, forks,
// preemption, eviction. After each operation the invariants are checked, and every stored slot must
// hold what its own sequence would have computed there.

#include <gtest/gtest.h>

#include <cstring>
#include <list>
#include <random>

#include "cache/test_kv_fixture.h"

namespace triptych {
namespace {

using test::KvParts;
using test::media_id;

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x7f4a7c15u;
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 29);
}

/// A sequence and, by position, a number that stands for its keys and values: like those it
/// depends on the tenant and on all tokens and media rows up to there.
struct Sequence {
  std::vector<int32_t> ids;
  std::vector<uint64_t> kv;
  SequencePages table;
};

class Simulation {
 public:
  Simulation(uint32_t seed, int64_t n_pages) : random_(seed), kv_(n_pages) {}

  void step() {
    const uint32_t dice = random_() % 100;
    if (sequences_.empty() || (dice < 12 && sequences_.size() < 8)) {
      start();
    } else if (dice < 80) {
      advance(any());
    } else if (dice < 86) {
      fork(any());
    } else if (dice < 92) {
      any()->table.release();
    } else if (dice < 94) {
      any()->table.roll_back();
    } else if (dice < 95 && random_() % 8 == 0) {
      kv_.index.clear();
    } else {
      sequences_.erase(any());
    }
    check();
  }

  void finish() {
    sequences_.clear();
    check();
    EXPECT_EQ(kv_.index.n_available(), kv_.pool.n_pages());
    kv_.index.clear();
    EXPECT_EQ(kv_.pool.n_free(), kv_.pool.n_pages());
  }

  const PrefixIndexStats& stats() const { return kv_.index.stats(); }
  int64_t n_forks = 0;
  int64_t n_refused = 0;

 private:
  using Place = std::list<Sequence>::iterator;

  Place any() {
    return std::next(sequences_.begin(), static_cast<int64_t>(random_() % sequences_.size()));
  }

  /// A prompt out of few pieces, so that many begin alike.
  void start() {
    std::vector<int32_t> ids;
    std::vector<uint64_t> parts;  // what each row's kv depends on
    std::vector<MediaRun> runs;
    std::vector<MediaId> kept;
    const uint32_t tenant = random_() % 2;
    for (uint32_t n = 1 + random_() % 4; n > 0; --n) {
      const uint32_t which = random_() % 3;
      const auto position = static_cast<int64_t>(ids.size());
      if (random_() % 3 == 0) {
        const int64_t length = 10 + 11 * static_cast<int64_t>(which / 2);  // two of equal length
        runs.push_back({.position = position, .length = length});
        kept.push_back(media_id(static_cast<uint8_t>(which)));
        for (int64_t row = 0; row < length; ++row) {
          ids.push_back(99);
          parts.push_back(mix(1000 + which, static_cast<uint64_t>(row)));
        }
      } else {
        for (uint32_t i = 0; i < 7 + 9 * which; ++i) {
          ids.push_back(static_cast<int32_t>(which));
          parts.push_back(which);
        }
      }
    }
    std::vector<uint64_t> kv;
    for (const uint64_t part : parts) kv.push_back(mix(kv.empty() ? tenant : kv.back(), part));
    const PrefixKey root = root_key({"model", tenant == 0 ? "a" : "b"});
    PageLayout layout = test::layout_of(static_cast<int64_t>(ids.size()), runs);
    sequences_.push_back({std::move(ids), std::move(kv),
                          SequencePages(kv_.index, std::move(layout), root, std::move(kept))});
  }

  void advance(Place s) {
    SequencePages& table = s->table;
    if (table.pages().empty()) {
      const Result<int64_t> found = table.n_cached(s->ids);
      const Result<int64_t> taken = table.adopt(s->ids);
      ASSERT_TRUE(taken.is_ok());
      ASSERT_EQ(*found, *taken);
      ASSERT_LT(*taken, table.n_tokens());
    }
    if (table.n_stored() == table.n_tokens()) {
      if (table.n_tokens() > 150) {
        sequences_.erase(s);
        return;
      }
      s->ids.push_back(static_cast<int32_t>(random_() % 2));
      s->kv.push_back(mix(s->kv.back(), static_cast<uint64_t>(s->ids.back())));
      ASSERT_TRUE(table.extend(1).is_ok());
    }
    const int64_t goal =
        std::min(table.n_tokens(), table.n_stored() + 1 + static_cast<int64_t>(random_() % 40));
    const int64_t n_held = static_cast<int64_t>(table.pages().size());
    if (const Status status = table.reserve(goal); !status.is_ok()) {
      ASSERT_EQ(status.code(), StatusCode::kResourceExhausted);
      ASSERT_EQ(static_cast<int64_t>(table.pages().size()), n_held);
      ++n_refused;
      any()->table.release();
      return;
    }
    for (int64_t p = table.n_stored(); p < goal; ++p) write(*s, p);
    ASSERT_TRUE(table.commit(goal - table.n_stored()).is_ok());
    if (random_() % 4 != 0) {
      ASSERT_TRUE(table.publish(s->ids).is_ok());
    }
  }

  void fork(Place s) {
    if (sequences_.size() >= 8) return;
    Result<SequencePages> twin =
        s->table.fork([](std::span<const std::byte> from, std::span<std::byte> to) {
          std::memcpy(to.data(), from.data(), from.size());
        });
    if (!twin.is_ok()) {
      ASSERT_EQ(twin.status().code(), StatusCode::kResourceExhausted);
      return;
    }
    ++n_forks;
    sequences_.push_back({s->ids, s->kv, std::move(twin).value()});
  }

  std::byte* slot(const SequencePages& table, int64_t position) {
    const int64_t page = table.layout().page_of(position);
    const int64_t place = position - table.page_begin()[static_cast<size_t>(page)];
    return kv_.pool.bytes(table.pages()[static_cast<size_t>(page)]).data() + 8 * place;
  }

  void write(const Sequence& s, int64_t position) {
    const auto i = static_cast<size_t>(s.table.layout().page_of(position));
    const int32_t page = s.table.pages()[i];
    ASSERT_EQ(kv_.pool.references(page), 1);
    ASSERT_FALSE(kv_.pool.published(page));
    std::memcpy(slot(s.table, position), &s.kv[static_cast<size_t>(position)], 8);
  }

  void check() {
    std::vector<const SequencePages*> tables;
    for (const Sequence& s : sequences_) {
      tables.push_back(&s.table);
      for (int64_t p = 0; p < s.table.n_stored(); ++p) {
        uint64_t stored = 0;
        std::memcpy(&stored, slot(s.table, p), 8);
        ASSERT_EQ(stored, s.kv[static_cast<size_t>(p)]) << "position " << p;
      }
    }
    const Status status = kv_.check(tables);
    ASSERT_TRUE(status.is_ok()) << status.message();
  }

  std::mt19937 random_;
  KvParts kv_;
  std::list<Sequence> sequences_;
};

TEST(KvProperty, RandomOperationsKeepEveryPromise) {
  int64_t saved = 0;
  int64_t evicted = 0;
  int64_t duplicates = 0;
  int64_t n_forks = 0;
  int64_t n_refused = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    Simulation simulation(seed, 12 + 4 * (seed % 5));
    for (int i = 0; i < 2000; ++i) {
      simulation.step();
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
    saved += simulation.stats().tokens_saved;
    evicted += simulation.stats().evicted;
    duplicates += simulation.stats().duplicates;
    n_forks += simulation.n_forks;
    n_refused += simulation.n_refused;
    simulation.finish();
  }
  // The random walk did meet what it is there for.
  EXPECT_GT(saved, 10000);
  EXPECT_GT(evicted, 1000);
  EXPECT_GT(duplicates, 100);
  EXPECT_GT(n_forks, 100);
  EXPECT_GT(n_refused, 100);
}

}  // namespace
}  // namespace triptych
