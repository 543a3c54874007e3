// Preemption while pictures are being encoded, over a fake machine with few pages.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "engine/engine.h"
#include "engine/test_fakes.h"

namespace triptych {
namespace {

/// The prompts of one `group` show the same pictures.
PreparedRequest random_request(std::mt19937& random, int group) {
  PreparedRequest out;
  out.n_known_tokens = 8;
  out.sampling.max_tokens = static_cast<int64_t>(1 + random() % 60);
  out.sampling.ignore_eos = true;
  const auto text = [&](size_t n) {
    for (size_t i = 0; i < n; ++i) out.ids.push_back(static_cast<int32_t>(random() % 6));
  };
  text(16 + random() % 24);
  for (uint32_t k = random() % 3; k > 0; --k) {
    out.spans.push_back(
        {static_cast<int64_t>(out.ids.size()), kFakePictureTokens, out.media.size()});
    out.media.push_back(fake_picture(2 * group + static_cast<int>(k % 2)));
    out.ids.insert(out.ids.end(), kFakePictureTokens, 7);
    text(1 + random() % 8);
  }
  return out;
}

/// 40 requests in random order with some cancels; returns how often one was preempted.
int32_t play(uint32_t seed) {
  std::mt19937 random(seed);
  double now_ms = 0;
  EngineConfig config;
  config.scheduler.admission = AdmissionRule::kPromptOnly;
  config.scheduler.encode_slice_ms = 0.01;
  config.media.encoder_cache_bytes = seed % 2 == 0 ? 0 : 1 << 20;
  config.prefix_cache = seed % 3 != 0;
  const auto engine =
      Engine::create(std::make_unique<FakeRunner>(), config, [&] { return now_ms; });
  EXPECT_TRUE(engine.is_ok()) << engine.status().message();
  if (!engine.is_ok()) return 0;
  std::map<uint64_t, FinishReason> ends;
  int32_t preempted = 0;
  const auto step = [&] {
    now_ms += 1;
    for (const SequenceEvent& event : (*engine)->step()) {
      EXPECT_TRUE(event.token.error.is_ok()) << event.token.error.message();
      if (event.token.finish == FinishReason::kNone) continue;
      EXPECT_TRUE(ends.emplace(event.token.sequence, event.token.finish).second);
    }
    const Status status = (*engine)->check_invariants();
    EXPECT_TRUE(status.is_ok()) << status.message();
    const Result<Snapshot> now = (*engine)->snapshot();
    EXPECT_TRUE(now.is_ok());
    if (!now.is_ok()) return;
    for (const SequenceState& s : now->waiting) preempted += s.n_preempted > 0;
  };
  std::vector<uint64_t> ids;
  for (int i = 0; i < 40; ++i) {
    const auto service_class = static_cast<ServiceClass>(random() % 3);
    const auto id =
        (*engine)->submit(random_request(random, i / 4), {.service_class = service_class});
    EXPECT_TRUE(id.is_ok()) << id.status().message();
    if (id.is_ok()) ids.push_back(*id);
    for (uint32_t k = random() % 6; k > 0; --k) step();
    if (random() % 8 == 0) (*engine)->cancel(ids[random() % ids.size()]);
  }
  for (int i = 0; i < 20000 && !(*engine)->idle(); ++i) step();
  EXPECT_EQ(ends.size(), ids.size()) << "seed " << seed;
  const PagePool& pages = (*engine)->runner().pages();
  EXPECT_EQ(pages.n_free() + pages.n_reclaimable(), pages.n_pages());
  EXPECT_EQ((*engine)->encoder_cache().n_in_flight(), 0);
  return preempted;
}

TEST(Preemption, RandomPreemptionsAndCancelsOverSharedPicturesLoseNothing) {
  int32_t preempted = 0;
  for (uint32_t seed = 0; seed < 4 && !testing::Test::HasFailure(); ++seed) preempted += play(seed);
  EXPECT_GT(preempted, 0);
}

TEST(Preemption, WorkOnAPictureGoesOnWithTheNextWhoWantsIt) {
  FakeRunner runner;
  MediaEncoder encoder(runner, 1 << 20);
  MediaUse first{.media = fake_picture(1), .feature = {1}, .features = nullptr};
  MediaUse second = first;
  encoder.want(1, first);
  encoder.want(2, second);
  ASSERT_TRUE(encoder.run(first.feature, 10).is_ok());
  EXPECT_FALSE(encoder.leave(3, second)) << "no part in it";
  ASSERT_TRUE(encoder.leave(1, first)) << "the second must ask again, or nobody may finish";
  encoder.want(2, second);
  EXPECT_EQ(encoder.blocks_left(second), kFakeBlocks - 10);
  const Result<MediaFeatures> features = encoder.run(second.feature, kFakeBlocks - 10);
  ASSERT_TRUE(features.is_ok()) << features.status().message();
  EXPECT_NE(*features, nullptr);
  EXPECT_FALSE(encoder.leave(2, second)) << "done";
}

}  // namespace
}  // namespace triptych
