// The engine for many callers: threads, preparation, streams.
#include "engine/multimodal_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "backends/backend_list.h"
#include "engine/test_fakes.h"

namespace triptych {
namespace {

constexpr const char* kTiny = "tests/parity/goldens/text_llama/checkpoint";

struct Front {
  std::shared_ptr<FakePreparer> preparer = std::make_shared<FakePreparer>();
  std::unique_ptr<MultiModalEngine> engine;

  explicit Front(const PrepLimits& limits = {}, const char* threads = "2") {
    EngineOptions options;
    options.settings.threads = threads;
    options.limits.max_sequences = 4;
    const auto checkpoint = Checkpoint::open(kTiny);
    const auto backend = backends().front().make(options.settings);
    auto inner = Engine::load(**checkpoint, *backend, options);
    EXPECT_TRUE(inner.is_ok()) << inner.status().message();
    engine = std::make_unique<MultiModalEngine>(std::move(*inner), preparer, limits);
  }
};

struct Outcome {
  std::vector<int32_t> tokens;
  TokenEvent last;
};

Outcome read_all(TokenStream& stream) {
  Outcome out;
  for (;;) {
    const auto event = stream.next(std::chrono::seconds(60));
    if (!event) {
      ADD_FAILURE() << "the stream has no end";
      return out;
    }
    if (event->token.token >= 0) out.tokens.push_back(event->token.token);
    out.last = event->token;
    if (event->ends_request) return out;
  }
}

TEST(MultiModalEngine, ManyThreadsGetTheAnswersThatOneGets) {
  Front front;
  std::vector<std::vector<int32_t>> expected;
  for (int i = 0; i < 8; ++i) {
    const auto stream =
        front.engine->submit(ask(std::string(3 + i, static_cast<char>(20 + i)), 16));
    ASSERT_TRUE(stream.is_ok()) << stream.status().message();
    expected.push_back(read_all(**stream).tokens);
    EXPECT_EQ(expected.back().size(), 16u);
  }
  std::vector<std::thread> threads;
  std::vector<std::vector<int32_t>> got(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const auto stream =
          front.engine->submit(ask(std::string(3 + i, static_cast<char>(20 + i)), 16));
      if (stream.is_ok()) got[static_cast<size_t>(i)] = read_all(**stream).tokens;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(got, expected);
}

TEST(MultiModalEngine, ASlowPictureDoesNotHoldUpAText) {
  Front front({.threads = 1});
  const auto slow = front.engine->submit(ask("abc", 4, "slow"));
  ASSERT_TRUE(slow.is_ok());
  const auto text = front.engine->submit(ask("abc", 4));
  ASSERT_TRUE(text.is_ok());
  EXPECT_EQ(read_all(**text).tokens.size(), 4u);
  front.preparer->released = true;
  EXPECT_EQ(read_all(**slow).tokens.size(), 4u);
}

TEST(MultiModalEngine, WhatIsWrongWithARequestIsSaidAtOnceOrInItsStream) {
  Front front;
  const auto header = front.engine->submit(ask("abc", 4, "header"));
  EXPECT_EQ(header.status().code(), StatusCode::kInvalidArgument);
  const auto bad = front.engine->submit(ask("abc", 4, "bad"));
  ASSERT_TRUE(bad.is_ok());
  EXPECT_EQ(read_all(**bad).last.error.code(), StatusCode::kInvalidArgument);
  const auto empty = front.engine->submit(ask("", 4));
  ASSERT_TRUE(empty.is_ok());
  EXPECT_EQ(read_all(**empty).last.finish, FinishReason::kError);
  const auto good = front.engine->submit(ask("abc", 4));
  ASSERT_TRUE(good.is_ok());
  EXPECT_EQ(read_all(**good).tokens.size(), 4u);
}

TEST(MultiModalEngine, AFullQueueRefusesBeforeAnyWork) {
  Front front({.threads = 1, .max_requests = 2, .max_host_bytes = 1500});
  const auto first = front.engine->submit(ask("abc", 2, "slow"));
  ASSERT_TRUE(first.is_ok());
  const auto bytes = front.engine->submit(ask("abc", 2, "slow"));
  EXPECT_EQ(bytes.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(front.engine->snapshot().refused.memory, 1);
  EXPECT_EQ(front.engine->snapshot().refused.queue, 0);
  front.preparer->released = true;
  EXPECT_EQ(read_all(**first).tokens.size(), 2u);
}

TEST(MultiModalEngine, RequestsThatWaitBehindPreparationAreBoundedToo) {
  Front front({.threads = 1, .max_open = 3});
  std::vector<std::shared_ptr<TokenStream>> taken;
  for (int i = 0; i < 3; ++i) taken.push_back(front.engine->submit(ask("abc", 0)).value());
  while (front.engine->snapshot().n_preparing > 0) std::this_thread::yield();
  EXPECT_EQ(front.engine->submit(ask("abc", 0)).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(front.engine->snapshot().refused.queue, 1);
  front.engine->cancel(taken[0]->id());
  EXPECT_EQ(read_all(*taken[0]).last.finish, FinishReason::kCancelled);
  EXPECT_TRUE(front.engine->submit(ask("abc", 1)).is_ok());
}

TEST(MultiModalEngine, CancelEndsAStreamWhereverTheRequestIs) {
  Front front({.threads = 1});
  const auto preparing = front.engine->submit(ask("abc", 4, "slow"));
  const auto running = front.engine->submit(ask("abc", 0));
  ASSERT_TRUE(preparing.is_ok() && running.is_ok());
  EXPECT_TRUE((*running)->next(std::chrono::seconds(60)).has_value());
  front.engine->cancel((*running)->id());
  front.engine->cancel((*preparing)->id());
  EXPECT_EQ(read_all(**running).last.finish, FinishReason::kCancelled);
  EXPECT_EQ(read_all(**preparing).last.finish, FinishReason::kCancelled) << "before it is prepared";
  front.engine->drain();
  front.preparer->released = true;
}

TEST(MultiModalEngine, BehindTheLastEventAReaderDoesNotWait) {
  Front front;
  const auto stream = front.engine->submit(ask("abc", 1));
  ASSERT_TRUE(stream.is_ok());
  read_all(**stream);
  EXPECT_FALSE((*stream)->next(std::chrono::hours(1)).has_value());
}

TEST(MultiModalEngine, DrainingFinishesWhatIsThereAndTakesNoMore) {
  Front front;
  const auto stream = front.engine->submit(ask("abcd", 30));
  ASSERT_TRUE(stream.is_ok());
  front.engine->drain();
  EXPECT_EQ(front.engine->submit(ask("abc", 2)).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(read_all(**stream).tokens.size(), 30u);
  const EngineStatus status = front.engine->snapshot();
  EXPECT_EQ(status.n_running + status.n_waiting + status.n_preparing, 0);
  EXPECT_EQ(status.free_pages + status.evictable_pages, status.total_pages);
  EXPECT_EQ(status.health, EngineHealth::kDraining);
}

/// Submits random requests, cancels some and reads an event of others; the streams whose end has
/// not been read.
std::vector<std::shared_ptr<TokenStream>> play(MultiModalEngine& engine, uint32_t seed, int n) {
  std::mt19937 random(seed);
  const char* const media[] = {"", "", "", "brief", "bad", "header"};
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int i = 0; i < n; ++i) {
    Request request =
        ask(std::string(random() % 40, static_cast<char>(20 + random() % 3)),
            static_cast<int64_t>(1 + random() % 8), media[random() % std::size(media)]);
    request.sampling.n = 1 + random() % 3;
    const double deadline_ms = random() % 8 == 0 ? 0.5 : 0;
    const auto stream = engine.submit(std::move(request), {.deadline_ms = deadline_ms});
    if (!stream.is_ok()) continue;
    streams.push_back(*stream);
    switch (random() % 4) {
      case 0:
        engine.cancel((*stream)->id());
        break;
      case 1: {
        const auto event = (*stream)->next(std::chrono::seconds(60));
        EXPECT_TRUE(event.has_value());
        engine.cancel(streams[random() % streams.size()]->id());
        if (event && event->ends_request) streams.pop_back();
        break;
      }
      case 2:
        engine.snapshot();
        break;
      default:
        break;
    }
  }
  return streams;
}

/// What waits in a stream whose request has ended: exactly one last event, and it is the last.
void expect_ended(TokenStream& stream) {
  bool ended = false;
  while (const auto event = stream.poll()) ended = event->ends_request;
  EXPECT_TRUE(ended) << "stream " << stream.id();
}

/// play() on four threads at once; all their streams.
std::vector<std::shared_ptr<TokenStream>> play_at_once(MultiModalEngine& engine, uint32_t seed,
                                                       int n) {
  std::vector<std::vector<std::shared_ptr<TokenStream>>> parts(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < parts.size(); ++i) {
    threads.emplace_back([&engine, &part = parts[i], seed, n, i] {
      part = play(engine, seed + static_cast<uint32_t>(i), n);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::shared_ptr<TokenStream>> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(MultiModalEngine, RandomSubmitsAndCancelsFromManyThreadsEndAndLeaveNoPageBehind) {
  Front front({.threads = 2, .max_requests = 16}, "1");
  const auto streams = play_at_once(*front.engine, 100, 16);
  std::thread canceller([&] {
    for (size_t i = 0; i < streams.size(); i += 3) front.engine->cancel(streams[i]->id());
  });
  front.engine->drain();
  canceller.join();
  for (const auto& stream : streams) expect_ended(*stream);
  const EngineStatus status = front.engine->snapshot();
  EXPECT_EQ(status.n_running + status.n_waiting + status.n_preparing, 0);
  EXPECT_EQ(status.free_pages + status.evictable_pages, status.total_pages);
}

TEST(MultiModalEngine, DestructionAmongPreparationsEndsAllStreams) {
  for (uint32_t round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<TokenStream>> streams;
    {
      Front front({.threads = 2}, "1");
      streams = play_at_once(*front.engine, 200 + 10 * round, 5);
    }
    for (const auto& stream : streams) expect_ended(*stream);
  }
}

TEST(MultiModalEngine, DestructionDoesNotWaitToEndStreamsUntilTheyArePrepared) {
  auto front = std::make_unique<Front>(PrepLimits{.threads = 1});
  const auto preparer = front->preparer;
  const auto preparing = front->engine->submit(ask("abc", 4, "slow"));
  const auto queued = front->engine->submit(ask("abc", 4, "slow"));
  ASSERT_TRUE(preparing.is_ok() && queued.is_ok());
  std::thread destruction([&] { front.reset(); });
  EXPECT_EQ(read_all(**preparing).last.finish, FinishReason::kCancelled);
  EXPECT_EQ(read_all(**queued).last.finish, FinishReason::kCancelled);
  preparer->released = true;
  destruction.join();
}

TEST(MultiModalEngine, DestructionEndsOpenStreams) {
  std::shared_ptr<TokenStream> stream;
  {
    Front front;
    const auto submitted = front.engine->submit(ask("abc", 0));
    ASSERT_TRUE(submitted.is_ok());
    stream = *submitted;
  }
  EXPECT_EQ(read_all(*stream).last.finish, FinishReason::kCancelled);
}

}  // namespace
}  // namespace triptych
