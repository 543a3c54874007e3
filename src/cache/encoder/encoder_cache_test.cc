#include "cache/encoder/encoder_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace triptych {
namespace {

constexpr Modality kImage = Modality::kImage;

MediaId id_of(uint8_t n) {
  MediaId id{};
  id.fill(n);
  return id;
}

EncodeUnit unit(uint8_t n, uint64_t n_bytes = 400, double cost = 1000) {
  return {.id = id_of(n), .n_bytes = n_bytes, .cost = cost};
}

/// f32, so `n_bytes` is a multiple of 4; the first value says whose they are.
Tensor features(uint8_t n, int64_t n_bytes = 400) {
  Tensor tensor = std::move(Tensor::allocate(DType::kF32, {n_bytes / 4})).value();
  tensor.f32()[0] = n;
  return tensor;
}

void encode(EncoderCache& cache, const EncodeUnit& unit) {
  ASSERT_EQ(cache.find_or_begin(unit, kImage, 0).state, EncoderState::kBegin);
  ASSERT_TRUE(
      cache.finish(unit.id, features(unit.id[0], static_cast<int64_t>(unit.n_bytes))).is_ok());
}

TEST(EncoderCache, EncodesAThingOnce) {
  EncoderCache cache(1000);
  EXPECT_EQ(cache.find_or_begin(unit(1), kImage, 10).state, EncoderState::kBegin);
  EXPECT_EQ(cache.find_or_begin(unit(1), kImage, 11).state, EncoderState::kInFlight);
  EXPECT_EQ(cache.find_or_begin(unit(1), kImage, 12).state, EncoderState::kInFlight);
  EXPECT_EQ(cache.reserved_bytes(), 400u);
  cache.leave(id_of(1), 11);  // cancelled
  const Result<EncoderCache::Finished> finished = cache.finish(id_of(1), features(1));
  ASSERT_TRUE(finished.is_ok());
  EXPECT_EQ(finished->waiters, (std::vector<uint64_t>{12}));
  EXPECT_TRUE(finished->cached);
  const EncoderLookup found = cache.find_or_begin(unit(1), kImage, 13);
  EXPECT_EQ(found.state, EncoderState::kHit);
  EXPECT_EQ(found.features, finished->features);
  EXPECT_EQ(cache.stored_bytes(), 400u);
  const EncoderCounts& counts = cache.stats().items[static_cast<size_t>(kImage)];
  EXPECT_EQ(counts.misses, 1);
  EXPECT_EQ(counts.joined, 2);
  EXPECT_EQ(counts.hits, 1);
  EXPECT_EQ(counts.hit_rate(), 0.75);
  EXPECT_FALSE(cache.stats().items[0].hit_rate().has_value());
  EXPECT_EQ(cache.finish(id_of(1), features(1)).status().code(), StatusCode::kFailedPrecondition);
}

TEST(EncoderCache, TheNextInLineEncodesWhatFailed) {
  EncoderCache cache(1000);
  cache.find_or_begin(unit(1), kImage, 10);
  cache.find_or_begin(unit(1), kImage, 11);
  cache.find_or_begin(unit(1), kImage, 12);
  EXPECT_EQ(cache.fail(id_of(1)), (std::vector<uint64_t>{11, 12}));
  EXPECT_EQ(cache.reserved_bytes(), 0u);
  EXPECT_EQ(cache.find_or_begin(unit(1), kImage, 11).state, EncoderState::kBegin);
  EXPECT_EQ(cache.find_or_begin(unit(1), kImage, 12).state, EncoderState::kInFlight);
  EXPECT_TRUE(cache.fail(id_of(7)).empty());
}

TEST(EncoderCache, WhatIsLargerThanTheBudgetIsServedAndNotKept) {
  EncoderCache cache(1000);
  encode(cache, unit(1));
  EXPECT_EQ(cache.find_or_begin(unit(2, 1004), kImage, 10).state, EncoderState::kBegin);
  EXPECT_EQ(cache.find_or_begin(unit(2, 1004), kImage, 11).state, EncoderState::kInFlight);
  const Result<EncoderCache::Finished> finished = cache.finish(id_of(2), features(2, 1004));
  ASSERT_TRUE(finished.is_ok());
  EXPECT_FALSE(finished->cached);
  EXPECT_EQ(finished->features->f32()[0], 2);
  EXPECT_EQ(finished->waiters, (std::vector<uint64_t>{11}));
  EXPECT_EQ(cache.stats().uncached, 1);
  EXPECT_TRUE(cache.contains(id_of(1)));  // nothing was evicted in vain
  EXPECT_FALSE(cache.contains(id_of(2)));
  EXPECT_TRUE(cache.check_invariants().is_ok());
}

TEST(EncoderCache, WhatIsInUseStays) {
  EncoderCache cache(800);
  encode(cache, unit(1));
  encode(cache, unit(2));
  MediaFeatures held = cache.find_or_begin(unit(1), kImage, 0).features;
  EXPECT_EQ(cache.in_use_bytes(), 400u);
  encode(cache, unit(3));
  EXPECT_TRUE(cache.contains(id_of(1)));
  EXPECT_FALSE(cache.contains(id_of(2)));
  const MediaFeatures also_held = cache.find_or_begin(unit(3), kImage, 0).features;
  encode(cache, unit(4));  // everything is in use: not kept
  EXPECT_FALSE(cache.contains(id_of(4)));
  held.reset();
  encode(cache, unit(4));
  EXPECT_TRUE(cache.contains(id_of(4)));
  EXPECT_FALSE(cache.contains(id_of(1)));
}

TEST(EncoderCache, CheapBytesLeaveBeforeDearOnes) {
  EncoderCache cache(800);
  encode(cache, unit(1, 400, 90000));
  encode(cache, unit(2, 400, 10));
  encode(cache, unit(3, 400, 10));
  EXPECT_TRUE(cache.contains(id_of(1)));
  EXPECT_FALSE(cache.contains(id_of(2)));
  EXPECT_EQ(cache.stats().evicted, 1);
}

TEST(EncoderCache, CountsItemsOfSeveralUnits) {
  EncoderCache cache(4000);
  encode(cache, unit(1));
  const std::vector<EncodeUnit> tiles = {unit(1), unit(2), unit(3)};
  const std::vector<EncoderLookup> first = cache.find_or_begin(tiles, Modality::kVideo, 5);
  EXPECT_EQ(first[0].state, EncoderState::kHit);
  EXPECT_EQ(first[1].state, EncoderState::kBegin);
  EXPECT_EQ(cache.stats().items[static_cast<size_t>(Modality::kVideo)].partial, 1);
  ASSERT_TRUE(cache.finish(id_of(2), features(2)).is_ok());
  cache.find_or_begin(tiles, Modality::kVideo, 6);
  EXPECT_EQ(cache.stats().items[static_cast<size_t>(Modality::kVideo)].joined, 1);
  ASSERT_TRUE(cache.finish(id_of(3), features(3)).is_ok());
  cache.find_or_begin(tiles, Modality::kVideo, 7);
  EXPECT_EQ(cache.stats().items[static_cast<size_t>(Modality::kVideo)].hits, 1);
}

TEST(EncoderCache, ABudgetOfNothingTurnsItOff) {
  EncoderCache cache(0);
  encode(cache, unit(1));
  EXPECT_EQ(cache.n_entries(), 0);
  encode(cache, unit(1));
}

TEST(EncoderCache, ClearingKeepsWhatIsBeingEncoded) {
  EncoderCache cache(1000);
  encode(cache, unit(1));
  cache.find_or_begin(unit(2), kImage, 0);
  cache.clear();
  EXPECT_EQ(cache.n_entries(), 0);
  EXPECT_EQ(cache.n_in_flight(), 1);
  EXPECT_TRUE(cache.finish(id_of(2), features(2)).is_ok());
  EXPECT_TRUE(cache.check_invariants().is_ok());
}

TEST(EncoderCache, RandomRequestsKeepTheBudgetAndGetTheirOwnFeatures) {
  std::mt19937 random(3);
  EncoderCache cache(3000);
  std::map<uint8_t, int64_t> in_flight;  // id -> waiters that finish() or fail() must name
  std::vector<std::pair<uint8_t, MediaFeatures>> held;
  const auto bytes_of = [](uint8_t n) { return 4 * (20 + 60 * (n % 16)); };  // some never fit
  for (int step = 0; step < 20000; ++step) {
    const auto n = static_cast<uint8_t>(random() % 40);
    const uint32_t dice = random() % 10;
    if (dice < 5) {
      const EncoderLookup found =
          cache.find_or_begin(unit(n, static_cast<uint64_t>(bytes_of(n)), 10.0 * n), kImage, n);
      ASSERT_EQ(found.state == EncoderState::kInFlight, in_flight.contains(n));
      if (found.state == EncoderState::kBegin) in_flight[n] = 0;
      if (found.state == EncoderState::kInFlight) ++in_flight[n];
      if (found.state == EncoderState::kHit) held.emplace_back(n, found.features);
    } else if (dice < 8 && !in_flight.empty()) {
      const auto [which, n_waiters] = *in_flight.begin();
      in_flight.erase(in_flight.begin());
      if (random() % 8 == 0) {
        ASSERT_EQ(static_cast<int64_t>(cache.fail(id_of(which)).size()), n_waiters);
      } else {
        const auto finished = cache.finish(id_of(which), features(which, bytes_of(which)));
        ASSERT_TRUE(finished.is_ok());
        ASSERT_EQ(static_cast<int64_t>(finished->waiters.size()), n_waiters);
        held.emplace_back(which, finished->features);
      }
    }
    while (held.size() > 4) held.erase(held.begin() + static_cast<int64_t>(random() % 4));
    for (const auto& [which, tensor] : held) ASSERT_EQ(tensor->f32()[0], which);
    const Status status = cache.check_invariants();
    ASSERT_TRUE(status.is_ok()) << status.message();
  }
  const EncoderCounts& counts = cache.stats().items[static_cast<size_t>(kImage)];
  EXPECT_GT(counts.hits, 100);
  EXPECT_GT(counts.joined, 100);
  EXPECT_GT(cache.stats().evicted, 100);
  EXPECT_GT(cache.stats().uncached, 100);
  EXPECT_GT(cache.stats().failed, 100);
}

}  // namespace
}  // namespace triptych
