// From submit to the last event, over a fake machine and a fake clock: host memory, deadlines, and
// requests that end before they reach the engine.
#include <gtest/gtest.h>

#include <thread>

#include "engine/multimodal_engine.h"
#include "engine/test_fakes.h"

namespace triptych {
namespace {

struct Front {
  std::shared_ptr<FakePreparer> preparer = std::make_shared<FakePreparer>();
  std::atomic<double> now_ms = 0;
  std::atomic<bool> held = false;  ///< the machine stands still
  std::unique_ptr<MultiModalEngine> engine;

  explicit Front(const PrepLimits& limits = {.threads = 1}) {
    auto runner = std::make_unique<FakeRunner>();
    runner->on_forward = [this] {
      while (held) std::this_thread::yield();
    };
    auto inner = Engine::create(std::move(runner), {}, [this] { return now_ms.load(); });
    EXPECT_TRUE(inner.is_ok()) << inner.status().message();
    engine = std::make_unique<MultiModalEngine>(std::move(*inner), preparer, limits);
  }
  ~Front() {
    preparer->released = true;
    held = false;
  }

  std::shared_ptr<TokenStream> submit(Request request, const SubmitOptions& options = {}) {
    auto stream = engine->submit(std::move(request), options);
    EXPECT_TRUE(stream.is_ok()) << stream.status().message();
    return stream.is_ok() ? *stream : nullptr;
  }
  void wait_until_preparing(int n) const {
    while (preparer->n_begun < n) std::this_thread::yield();
  }
};

std::vector<SequenceEvent> all_of(TokenStream& stream) {
  std::vector<SequenceEvent> out;
  do {
    const auto event = stream.next(std::chrono::seconds(60));
    if (!event) {
      ADD_FAILURE() << "the stream has no end";
      break;
    }
    out.push_back(*event);
  } while (!out.back().ends_request);
  return out;
}

TEST(RequestLifetime, HostMemoryIsHeldUntilTheRequestEnds) {
  Front front({.threads = 1, .max_host_bytes = 1010});
  front.preparer->with_pixels = true;
  front.held = true;
  const auto first = front.submit(ask("\1", 2, "picture"));
  while (front.engine->snapshot().n_preparing > 0) std::this_thread::yield();
  // Encoded file and decoded pixels are gone; 48 bytes of pixels and 22 ids are there.
  EXPECT_EQ(front.engine->snapshot().host_bytes, 48u + 22 * 4);
  const auto refused = front.engine->submit(ask("\1", 2, "picture"));
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(front.preparer->n_begun, 1) << "refused by the header alone";
  front.held = false;
  EXPECT_EQ(all_of(*first).back().token.finish, FinishReason::kLength);
  front.engine->drain();
  EXPECT_EQ(front.engine->snapshot().host_bytes, 0u);
}

TEST(RequestLifetime, WhatNeverFitsIsNotAskedToComeBack) {
  Front front({.max_host_bytes = 999});
  EXPECT_EQ(front.engine->submit(ask("\1", 2, "picture")).status().code(), StatusCode::kOutOfRange);
}

TEST(RequestLifetime, ADeadlineCountsFromSubmitAndEndsWhatWaitsToBePrepared) {
  Front front;
  const auto slow = front.submit(ask("\1", 2, "slow"));
  front.wait_until_preparing(1);
  const auto queued = front.submit(ask("\1", 2, "picture"), {.deadline_ms = 50});
  front.now_ms = 50;
  const auto events = all_of(*queued);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].token.error.code(), StatusCode::kDeadlineExceeded);
  front.preparer->released = true;
  EXPECT_EQ(all_of(*slow).back().token.finish, FinishReason::kLength);
  front.engine->drain();
  EXPECT_EQ(front.preparer->n_begun, 1) << "the late one was never prepared";
}

TEST(RequestLifetime, PreparationCountsAgainstTheDeadlineInTheEngine) {
  Front front;
  const auto stream = front.submit(ask("\1", 2, "slow"), {.deadline_ms = 50});
  front.wait_until_preparing(1);
  front.now_ms = 49;
  front.held = true;
  front.preparer->released = true;
  while (front.engine->snapshot().n_preparing > 0) std::this_thread::yield();
  front.now_ms = 51;  // 2 ms in the engine, 51 since submit
  front.held = false;
  EXPECT_EQ(all_of(*stream).back().token.error.code(), StatusCode::kDeadlineExceeded);
}

TEST(RequestLifetime, WhatIsCancelledWhileItWaitsIsNeverPrepared) {
  Front front({.threads = 1, .max_requests = 2});
  const auto slow = front.submit(ask("\1", 2, "slow"));
  front.wait_until_preparing(1);
  const auto queued = front.submit(ask("\1", 2, "picture"));
  front.engine->cancel(queued->id());
  EXPECT_EQ(all_of(*queued).back().token.finish, FinishReason::kCancelled);
  const auto next = front.submit(ask("\1", 2, "picture"));  // its place is free at once
  front.preparer->released = true;
  EXPECT_EQ(all_of(*slow).back().token.finish, FinishReason::kLength);
  EXPECT_EQ(all_of(*next).back().token.finish, FinishReason::kLength);
  EXPECT_EQ(front.preparer->n_begun, 2);
}

TEST(RequestLifetime, EveryAnswerEndsWhenTheRequestDoesNotReachTheEngine) {
  Front front;
  Request request = ask("\1", 2, "bad");
  request.sampling.n = 3;
  const auto events = all_of(*front.submit(std::move(request)));
  ASSERT_EQ(events.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(events[i].token.choice, i);
    EXPECT_EQ(events[i].token.error.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(events[i].ends_request, i == 2);
  }
  request = ask("\1", 2);
  request.sampling.n = int64_t{1} << 40;
  EXPECT_EQ(front.engine->submit(std::move(request)).status().code(), StatusCode::kInvalidArgument);
}

TEST(RequestLifetime, AnExceptionInPreparationEndsThatRequestAlone) {
  Front front;
  const auto broken = all_of(*front.submit(ask("\1", 2, "broken")));
  EXPECT_EQ(broken.back().token.error.code(), StatusCode::kInternal);
  EXPECT_NE(broken.back().token.error.message().find("surprise"), std::string::npos);
  EXPECT_EQ(all_of(*front.submit(ask("\1", 2, "picture"))).back().token.finish,
            FinishReason::kLength);
}

}  // namespace
}  // namespace triptych
