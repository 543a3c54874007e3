// Preemption while pictures are being encoded, over a fake machine with few pages.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "engine/engine.h"

namespace triptych {
namespace {

constexpr int64_t kPictureTokens = 20;
constexpr int64_t kBlocks = 30;

/// Draws token 1 for ever; towers have blocks to stop between.
class FakeRunner final : public StepRunner {
 public:
  FakeRunner() {
    limits_.context_tokens = 160;
    limits_.step_rows = 64;
    limits_.chunk_rows = 32;
    limits_.max_sequences = 6;
    limits_.vocab_size = 8;
    limits_.hidden_size = 2;
    limits_.n_encode_blocks = kBlocks;
    limits_.encode_block_flops = 1e9;
    limits_.encode_bytes = 1 << 10;
    limits_.row_cost = {1e6, 1e6};
    limits_.pair_cost = {1e3, 1e3};
    Result<PagePool> pages = PagePool::create(
        {.dtype = DType::kF32, .n_layers = 1, .n_kv_heads = 1, .head_dim = 1}, 16, false);
    EXPECT_TRUE(pages.is_ok());
    pages_ = std::move(*pages);
  }
  const RunnerLimits& limits() const override { return limits_; }
  PagePool& pages() override { return pages_; }
  Status encode(EncodeJob& job, int64_t n_blocks) override {
    job.state.next_block += n_blocks;
    if (job.state.next_block < kBlocks) return Status::ok();
    TRIPTYCH_ASSIGN_OR_RETURN(
        job.embeddings,
        Tensor::allocate(DType::kF32, Shape{job.media->n_tokens, limits_.hidden_size}));
    job.done = true;
    return Status::ok();
  }
  Result<View> forward(std::span<const SequenceStep> batch) override {
    int64_t n = 0;
    for (const SequenceStep& step : batch) n += step.wants_logits;
    logits_.assign(static_cast<size_t>(std::max<int64_t>(n, 1) * limits_.vocab_size), 0);
    for (size_t i = 1; i < logits_.size(); i += static_cast<size_t>(limits_.vocab_size)) {
      logits_[i] = 1;
    }
    return View::dense(logits_.data(), DType::kF32, Shape{n, limits_.vocab_size});
  }

 private:
  RunnerLimits limits_;
  PagePool pages_;
  std::vector<float> logits_;
};

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
    PreparedMedia picture;
    picture.n_tokens = kPictureTokens;
    picture.id.fill(static_cast<uint8_t>(2 * group + static_cast<int>(k % 2)));
    Result<Tensor> pixels = Tensor::allocate(DType::kF32, Shape{3, 2, 2});
    EXPECT_TRUE(pixels.is_ok());
    picture.pixels = std::move(*pixels);
    out.spans.push_back({static_cast<int64_t>(out.ids.size()), kPictureTokens, out.media.size()});
    out.media.push_back(std::move(picture));
    out.ids.insert(out.ids.end(), kPictureTokens, 7);
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
  config.scheduler.idle_encode_ms = 0.01;
  config.encoder_cache_bytes = seed % 2 == 0 ? 0 : 1 << 20;
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
  const auto picture = std::make_shared<PreparedMedia>();
  picture->n_tokens = kPictureTokens;
  MediaUse first{.media = picture, .feature = {1}, .features = nullptr};
  MediaUse second = first;
  encoder.want(1, first);
  encoder.want(2, second);
  ASSERT_TRUE(encoder.run(first.feature, 10).is_ok());
  EXPECT_FALSE(encoder.leave(3, second)) << "no part in it";
  ASSERT_TRUE(encoder.leave(1, first)) << "the second must ask again, or nobody may finish";
  encoder.want(2, second);
  EXPECT_EQ(encoder.blocks_left(second), kBlocks - 10);
  const Result<MediaFeatures> features = encoder.run(second.feature, kBlocks - 10);
  ASSERT_TRUE(features.is_ok()) << features.status().message();
  EXPECT_NE(*features, nullptr);
  EXPECT_FALSE(encoder.leave(2, second)) << "done";
}

}  // namespace
}  // namespace triptych
