#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "request/request_preparer.h"

namespace triptych {

inline constexpr int64_t kFakeBlocks = 30;
inline constexpr int64_t kFakePictureTokens = 20;

/// A machine with few pages that draws token 1 for ever; towers have blocks to stop between.
class FakeRunner final : public StepRunner {
 public:
  FakeRunner() {
    limits_.context_tokens = 160;
    limits_.step_rows = 64;
    limits_.chunk_rows = 32;
    limits_.max_sequences = 6;
    limits_.vocab_size = 8;
    limits_.hidden_size = 2;
    limits_.n_encode_blocks = kFakeBlocks;
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
    if (on_encode) on_encode(n_blocks);
    job.state.next_block += n_blocks;
    if (job.state.next_block < kFakeBlocks) return Status::ok();
    TRIPTYCH_ASSIGN_OR_RETURN(
        job.embeddings,
        Tensor::allocate(DType::kF32, Shape{job.media->n_tokens, limits_.hidden_size}));
    job.done = true;
    return Status::ok();
  }
  Result<View> forward(std::span<const SequenceStep> batch) override {
    if (on_forward) on_forward();
    TRIPTYCH_RETURN_IF_ERROR(forward_error);
    logits_.clear();
    for (const SequenceStep& step : batch) {
      if (!step.wants_logits) continue;
      logits_.resize(logits_.size() + static_cast<size_t>(limits_.vocab_size));
      float* row = &*logits_.end() - limits_.vocab_size;
      row[1] = step.ids.back() == nan_behind ? std::numeric_limits<float>::quiet_NaN() : 1;
    }
    const auto n = static_cast<int64_t>(logits_.size()) / limits_.vocab_size;
    return View::dense(logits_.data(), DType::kF32, Shape{n, limits_.vocab_size});
  }

  std::function<void()> on_forward;
  std::function<void(int64_t n_blocks)> on_encode;
  Status forward_error;     ///< of every forward pass
  int32_t nan_behind = -1;  ///< logits behind this id are not numbers

 private:
  RunnerLimits limits_;
  PagePool pages_;
  std::vector<float> logits_;
};

/// A picture of the fake machine; equal numbers are equal pictures.
inline std::shared_ptr<const PreparedMedia> fake_picture(int number) {
  auto out = std::make_shared<PreparedMedia>();
  out->n_tokens = kFakePictureTokens;
  out->id.fill(static_cast<uint8_t>(number));
  Result<Tensor> pixels = Tensor::allocate(DType::kF32, Shape{3, 2, 2});
  EXPECT_TRUE(pixels.is_ok());
  out->pixels = std::move(*pixels);
  return out;
}

/// A prompt of ids that the fake machine knows.
inline PreparedRequest fake_prompt(std::vector<int32_t> ids, int64_t max_tokens) {
  PreparedRequest out;
  out.ids = std::move(ids);
  out.sampling.max_tokens = max_tokens;
  out.sampling.ignore_eos = true;
  out.n_known_tokens = 8;
  return out;
}

/// The prompt's characters are its ids. "slow" media take until `released`, "brief" ones a moment,
/// "bad" ones fail, "broken" ones throw.
class FakePreparer final : public RequestPreparer {
 public:
  Result<RequestCost> cost(const Request& request) const override {
    RequestCost out;
    for (const MediaItem& item : request.media) {
      if (item.name == "header") return invalid_argument("header: not a picture");
      ++out.n_media;
      out.host_bytes += 1000;
    }
    return out;
  }
  Result<PreparedRequest> prepare(const Request& request,
                                  const PrepContext& context) const override {
    ++n_begun;
    PreparedRequest out;
    for (const char c : request.raw_prompt) out.ids.push_back(c);
    for (const MediaItem& item : request.media) {
      if (!context.begin(PrepStage::kDecode)) return Status(StatusCode::kCancelled, "ended");
      while (item.name == "slow" && !released) std::this_thread::yield();
      if (item.name == "brief") std::this_thread::sleep_for(std::chrono::microseconds(300));
      if (item.name == "bad") return invalid_argument("bad: truncated");
      if (item.name == "broken") throw std::runtime_error("broken: surprise");
      if (on_decode) on_decode();
      if (!with_pixels) continue;
      out.spans.push_back(
          {static_cast<int64_t>(out.ids.size()), kFakePictureTokens, out.media.size()});
      out.media.push_back(fake_picture(1));
      out.ids.insert(out.ids.end(), kFakePictureTokens, 7);
    }
    if (with_pixels && !out.media.empty()) out.ids.push_back(2);
    out.sampling = request.sampling;
    out.n_known_tokens = 1 << 20;
    return out;
  }
  mutable std::atomic<bool> released = false;
  mutable std::atomic<int> n_begun = 0;  ///< prepare() calls
  bool with_pixels = false;              ///< media reach the engine; else they are left out
  std::function<void()> on_decode;
};

inline Request ask(const std::string& prompt, int64_t max_tokens, const std::string& media = {}) {
  Request out;
  out.raw_prompt = prompt;
  out.sampling.max_tokens = max_tokens;
  out.sampling.ignore_eos = true;
  if (!media.empty()) out.media.push_back({Modality::kImage, media, nullptr});
  return out;
}

}  // namespace triptych
