// Reports about caches, cancelling, memory and choices (F26, F28, F30, F31, F33, F34, F47), where
// prep and engine meet.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <set>

#include "backends/backend_list.h"
#include "base/file.h"
#include "engine/multimodal_engine.h"
#include "engine/test_fakes.h"
#include "prep/media_preparer.h"

namespace triptych {
namespace {

using testing::HasSubstr;
using Tokens = std::vector<int32_t>;

constexpr const char* kCheckpoint = "tests/parity/goldens/llava_clip/checkpoint";
constexpr int64_t kPictureTokens = 16;

/// A Windows bitmap whose `data` are palette and rows.
MediaItem bmp(uint32_t width, uint32_t height, uint32_t bits, const std::string& data) {
  const uint32_t palette_bytes = bits == 1 ? 8 : 0;
  std::string head = "BM";
  for (const uint32_t field :
       {0u, 0u, 54 + palette_bytes, 40u, width, height, bits << 16 | 1, 0u, 0u, 0u, 0u, 0u, 0u}) {
    for (int shift = 0; shift < 32; shift += 8) head += static_cast<char>(field >> shift & 0xFF);
  }
  return {Modality::kImage, fmt::format("{}x{}", width, height),
          std::make_shared<const std::string>(head + data)};
}

/// Of one colour; another shade is another picture.
MediaItem bitmap(int shade) {
  std::string rows(8 * 8 * 3, '\0');
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<char>(shade * (1 + static_cast<int>(i % 3)));
  }
  return bmp(8, 8, 24, rows);
}

/// Of 1 bit a pixel, sides multiples of 32; all of it is the first of its two colours, black.
MediaItem large_bitmap(uint32_t width, uint32_t height) {
  return bmp(width, height, 1, std::string(8 + size_t{width} / 8 * height, '\0'));
}

Request question(const std::vector<MediaItem>& pictures, int64_t max_tokens = 12) {
  Request out;
  RequestMessage message{"user", {}};
  for (const MediaItem& picture : pictures) {
    message.parts.push_back({{}, out.media.size()});
    out.media.push_back(picture);
  }
  message.parts.push_back({"What is it, and is it the same one as before?", std::nullopt});
  out.messages.push_back(std::move(message));
  out.sampling.max_tokens = max_tokens;
  out.sampling.ignore_eos = true;
  return out;
}

/// A small model with all caches on.
struct Stack {
  std::shared_ptr<const Preprocessor> prep;
  std::unique_ptr<Engine> engine;
  ThreadPool pool{1};
  TensorRegistry registry;

  explicit Stack(const EngineConfig& config = {}, const PrepOptions& prep_options = {}) {
    EngineOptions options;
    options.settings.threads = "2";
    options.limits.max_sequences = 8;
    options.config = config;
    options.limits.media = config.media;
    const auto checkpoint = Checkpoint::open(kCheckpoint);
    const auto spec = parse_model_spec(**checkpoint);
    prep = *Preprocessor::load(**checkpoint, *spec, prep_options);
    const auto backend = backends().front().make(options.settings);
    auto loaded = Engine::load(**checkpoint, *backend, options);
    EXPECT_TRUE(loaded.is_ok()) << loaded.status().message();
    engine = std::move(*loaded);
  }

  Result<PreparedRequest> prepare(const Request& request) {
    return prep->prepare(request, engine->runner().limits().context_tokens, pool, registry);
  }
  uint64_t submit(const Request& request, const SubmitOptions& options = {}) {
    Result<PreparedRequest> prepared = prepare(request);
    EXPECT_TRUE(prepared.is_ok()) << prepared.status().message();
    const Result<uint64_t> id = engine->submit(std::move(*prepared), options);
    EXPECT_TRUE(id.is_ok()) << id.status().message();
    return *id;
  }
  /// Steps until all ends; events by request.
  std::map<uint64_t, std::vector<SequenceEvent>> finish() {
    std::map<uint64_t, std::vector<SequenceEvent>> out;
    for (int i = 0; !engine->idle(); ++i) {
      if (i == 20000) {
        ADD_FAILURE() << "no end";
        break;
      }
      for (SequenceEvent& event : engine->step()) {
        out[event.token.sequence].push_back(std::move(event));
      }
    }
    return out;
  }
  std::vector<SequenceEvent> ask(const Request& request, const SubmitOptions& options = {}) {
    const uint64_t id = submit(request, options);
    return finish()[id];
  }
  /// Nobody holds a page or features, and the contracts hold.
  void expect_nothing_held() const {
    const PagePool& pages = engine->runner().pages();
    EXPECT_EQ(pages.n_free() + pages.n_reclaimable(), pages.n_pages());
    EXPECT_EQ(engine->encoder_cache().in_use_bytes(), 0u);
    EXPECT_EQ(engine->encoder_cache().n_in_flight(), 0);
    const Status status = engine->check_invariants();
    EXPECT_TRUE(status.is_ok()) << status.message();
  }
};

Tokens tokens_of(const std::vector<SequenceEvent>& events, uint32_t choice = 0) {
  Tokens out;
  for (const SequenceEvent& event : events) {
    EXPECT_TRUE(event.token.error.is_ok()) << event.token.error.message();
    if (event.token.choice == choice && event.token.token >= 0) out.push_back(event.token.token);
  }
  return out;
}

EngineConfig no_caches() {
  EngineConfig out;
  out.prefix_cache = false;
  out.media.encoder_cache_bytes = 0;
  return out;
}

TEST(F26, AnotherPictureUnderTheSameTextGetsItsOwnAnswer) {
  Stack cold(no_caches());
  const Tokens red = tokens_of(cold.ask(question({bitmap(20)})));
  const Tokens blue = tokens_of(cold.ask(question({bitmap(61)})));
  ASSERT_NE(red, blue) << "the model does not look at the picture";
  Stack warm;
  EXPECT_EQ(tokens_of(warm.ask(question({bitmap(20)}))), red);
  const auto second = warm.ask(question({bitmap(61)}));
  EXPECT_EQ(tokens_of(second), blue);
  const Result<PreparedRequest> prepared = warm.prepare(question({bitmap(61)}));
  EXPECT_LE(second.back().timeline->cached_tokens, prepared->spans[0].position);
  const auto again = warm.ask(question({bitmap(20)}));
  EXPECT_EQ(tokens_of(again), red);
  EXPECT_GT(again.back().timeline->cached_tokens, prepared->spans[0].position + kPictureTokens - 1);
}

TEST(F26, AnotherTenantSharesNothing) {
  Stack stack;
  const Tokens first = tokens_of(stack.ask(question({bitmap(20)}), {.tenant = 1}));
  const auto other = stack.ask(question({bitmap(20)}), {.tenant = 2});
  EXPECT_EQ(tokens_of(other), first);
  EXPECT_EQ(other.back().timeline->cached_tokens, 0);
  EXPECT_EQ(other.back().timeline->media_in_encoder, 0);
}

TEST(F26, TheSameFileOnAnotherBackgroundIsAnotherPicture) {
  const Result<std::string> bytes = read_file("tests/field/data/image/hidden_rgb.png");
  ASSERT_TRUE(bytes.is_ok()) << bytes.status().message();
  const MediaItem item{Modality::kImage, "hidden_rgb.png",
                       std::make_shared<const std::string>(*bytes)};
  PrepOptions black;
  black.decode.background = {0, 0, 0};
  Stack on_white;
  Stack on_black({}, black);
  const Result<PreparedRequest> white = on_white.prepare(question({item}));
  const Result<PreparedRequest> dark = on_black.prepare(question({item}));
  ASSERT_TRUE(white.is_ok() && dark.is_ok());
  EXPECT_NE(white->media[0]->id, dark->media[0]->id);
}

TEST(F28, AnAbortedRequestLeavesNothingInTheAnswerOfTheNextOne) {
  Stack cold(no_caches());
  Stack warm;
  for (int round = 0; round < 50; ++round) {
    const Request victim = question({bitmap(100 + round % 7)});
    const uint64_t donor = warm.submit(question({bitmap(round)}, 40));
    for (int i = 0; i <= round % 9; ++i) warm.engine->step();
    warm.engine->cancel(donor);
    const uint64_t id = warm.submit(victim);
    EXPECT_EQ(tokens_of(warm.finish()[id]), tokens_of(cold.ask(victim))) << round;
  }
  warm.expect_nothing_held();
}

TEST(F28, SixtyFourAtOnceAnswerAsOneByOne) {
  Stack cold(no_caches());
  Stack warm;
  std::vector<uint64_t> ids;
  std::vector<Tokens> expected;
  for (int i = 0; i < 64; ++i) {
    std::vector<MediaItem> pictures;
    for (int k = i % 3; k > 0; --k) pictures.push_back(bitmap(i % 11 + k));
    const Request request = question(pictures, 4 + i % 13);
    expected.push_back(tokens_of(cold.ask(request)));
    ids.push_back(warm.submit(request));
  }
  auto events = warm.finish();
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(tokens_of(events[ids[i]]), expected[i]) << i;
  warm.expect_nothing_held();
}

TEST(F30, TwoHundredAbortsAnywhereOnTheWayLeaveNothingBehind) {
  EngineConfig config;
  config.scheduler.encode_slice_ms = 1e-3;  // block by block
  Stack stack(config);
  const Tokens expected = tokens_of(stack.ask(question({bitmap(250)})));
  for (int i = 0; i < 200; ++i) {
    const uint64_t id = stack.submit(question({bitmap(i), bitmap(i + 1)}, 30));
    for (int step = 0; step < i % 12; ++step) stack.engine->step();
    stack.engine->cancel(id);
    const auto events = stack.finish()[id];
    ASSERT_FALSE(events.empty());
    EXPECT_EQ(events.back().token.finish, FinishReason::kCancelled);
    stack.expect_nothing_held();
  }
  EXPECT_EQ(tokens_of(stack.ask(question({bitmap(250)}))), expected);
}

TEST(F31, AnItemLargerThanMediaMemoryIsRefusedWithBothNumbers) {
  EngineConfig config;
  config.media.in_work_bytes = 1000;
  Stack stack(config);
  const uint64_t text = stack.submit(question({}, 8));
  const uint64_t id = stack.submit(question({bitmap(1)}));
  auto events = stack.finish();
  ASSERT_EQ(events[id].size(), 1u);
  EXPECT_EQ(events[id][0].token.error.code(), StatusCode::kOutOfRange);
  EXPECT_THAT(events[id][0].token.error.message(), HasSubstr("1000"));
  EXPECT_THAT(events[id][0].token.error.message(), HasSubstr("need"));
  EXPECT_EQ(tokens_of(events[text]).size(), 8u);
}

TEST(F31, AnItemLargerThanTheEncoderCacheIsAnsweredUncached) {
  Stack ample;
  const Tokens expected = tokens_of(ample.ask(question({bitmap(1)})));
  const uint64_t item_bytes = ample.engine->encoder_cache().stored_bytes();
  ASSERT_GT(item_bytes, 0u);
  EngineConfig config;
  config.media.encoder_cache_bytes = item_bytes - 1;
  Stack tight(config);
  EXPECT_EQ(tokens_of(tight.ask(question({bitmap(1)}))), expected);
  EXPECT_EQ(tight.engine->encoder_cache().n_entries(), 0);
  EXPECT_EQ(tight.engine->encoder_cache().stats().uncached, 1);
}

TEST(F33, APictureThatTakesLongToEncodeHoldsNobodysDecodeLongerThanASlice) {
  constexpr double kBlockMs = 4;
  constexpr double kForwardMs = 1;
  double now_ms = 0;
  auto runner = std::make_unique<FakeRunner>();
  runner->on_encode = [&](int64_t n_blocks) { now_ms += kBlockMs * static_cast<double>(n_blocks); };
  runner->on_forward = [&] { now_ms += kForwardMs; };
  const EngineConfig config;
  auto engine = Engine::create(std::move(runner), config, [&] { return now_ms; });
  ASSERT_TRUE(engine.is_ok()) << engine.status().message();
  const auto submit = [&](std::vector<int32_t> ids, int picture, int64_t max_tokens) {
    PreparedRequest request;
    request.ids = std::move(ids);
    if (picture > 0) {
      request.spans = {{static_cast<int64_t>(request.ids.size()), kFakePictureTokens, 0}};
      request.media = {fake_picture(picture)};
      request.ids.insert(request.ids.end(), kFakePictureTokens, 7);
      request.ids.push_back(2);
    }
    request.n_known_tokens = 8;
    request.sampling.max_tokens = max_tokens;
    request.sampling.ignore_eos = true;
    return *(*engine)->submit(std::move(request));
  };
  // The cost model has seen what a block takes.
  submit({3}, 1, 1);
  while (!(*engine)->idle()) (*engine)->step();

  const uint64_t a = submit({3, 4}, 0, 100);
  uint64_t b = 0;
  double last_ms = 0;
  double longest_ms = 0;
  int n_a = 0;
  int n_a_before_b = 0;
  while (!(*engine)->idle()) {
    for (const SequenceEvent& event : (*engine)->step()) {
      EXPECT_TRUE(event.token.error.is_ok()) << event.token.error.message();
      if (event.token.sequence == b && n_a_before_b == 0) n_a_before_b = n_a;
      if (event.token.sequence != a || event.token.token < 0) continue;
      EXPECT_EQ(event.usage.preemptions, 0);
      if (n_a > 0) longest_ms = std::max(longest_ms, now_ms - last_ms);
      last_ms = now_ms;
      if (++n_a == 20) b = submit({5}, 2, 4);
    }
  }
  EXPECT_EQ(n_a, 100);
  EXPECT_LE(longest_ms, config.scheduler.encode_slice_ms + kBlockMs + kForwardMs);
  EXPECT_GT(n_a_before_b, 30) << "A went on while B was encoded";
}

/// Leaves 100 MiB of addresses to whoever decodes a picture.
class StarvedPreparer final : public RequestPreparer {
 public:
  explicit StarvedPreparer(std::shared_ptr<const RequestPreparer> inner)
      : inner_(std::move(inner)) {}

  Result<RequestCost> cost(const Request& request) const override { return inner_->cost(request); }
  Result<PreparedRequest> prepare(const Request& request,
                                  const PrepContext& context) const override {
    PrepContext starved = context;
    starved.begin = [&](PrepStage stage) {
      if (stage == PrepStage::kDecode) leave(uint64_t{100} << 20);
      return context.begin(stage);
    };
    Result<PreparedRequest> out = inner_->prepare(request, starved);
    set_limit(before_.rlim_cur);
    return out;
  }

 private:
  static rlimit now() {
    rlimit out{};
    EXPECT_EQ(getrlimit(RLIMIT_AS, &out), 0);
    return out;
  }
  void leave(uint64_t n_bytes) const {
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    set_limit(pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + n_bytes);
  }
  void set_limit(rlim_t n_bytes) const {
    const rlimit limit{n_bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  }

  std::shared_ptr<const RequestPreparer> inner_;
  rlimit before_ = now();
};

/// The small model for many callers.
struct Front {
  std::unique_ptr<MultiModalEngine> engine;

  explicit Front(const PrepLimits& limits, bool starved = false) {
    Stack stack;
    std::shared_ptr<const RequestPreparer> preparer =
        std::make_shared<MediaPreparer>(stack.prep, stack.engine->runner().limits().context_tokens,
                                        stack.engine->model_runner().registry(), 64 << 20);
    if (starved) preparer = std::make_shared<StarvedPreparer>(std::move(preparer));
    engine = std::make_unique<MultiModalEngine>(std::move(stack.engine), preparer, limits);
  }
  std::vector<SequenceEvent> read(const Request& request) {
    const auto stream = engine->submit(request);
    EXPECT_TRUE(stream.is_ok()) << stream.status().message();
    std::vector<SequenceEvent> out;
    while (stream.is_ok() && (out.empty() || !out.back().ends_request)) {
      const auto event = (*stream)->next(std::chrono::seconds(600));
      if (!event) {
        ADD_FAILURE() << "the stream has no end";
        break;
      }
      out.push_back(*event);
    }
    return out;
  }
};

TEST(F34, AHugePictureIsScaledOrRefusedByItsHeader) {
  const Request huge = question({large_bitmap(9024, 6016)});
  Front ample({.threads = 1});
  EXPECT_EQ(tokens_of(ample.read(huge)).size(), 12u);
  Front tight({.threads = 1, .max_host_bytes = uint64_t{100} << 20});
  EXPECT_EQ(tight.engine->submit(huge).status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(tokens_of(tight.read(question({bitmap(1)}))).size(), 12u) << "alive";
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they map terabytes
TEST(F34, AFailedAllocationFailsThatRequestOnly) {
  Front front({.threads = 1}, /*starved=*/true);
  const auto events = front.read(question({large_bitmap(9024, 6016)}));
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().token.error.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(events.back().token.error.message(), HasSubstr("9024 x 6016"));
  EXPECT_EQ(tokens_of(front.read(question({bitmap(1)}))).size(), 12u) << "alive";
}
#endif

TEST(F34, DozensOfPicturesInOneMessageAreRefusedByTheirTokens) {
  Front front({.threads = 1});
  const std::vector<MediaItem> pictures(33, large_bitmap(1024, 1024));
  const Status refused = front.engine->submit(question(pictures)).status();
  EXPECT_EQ(refused.code(), StatusCode::kOutOfRange);
  EXPECT_THAT(refused.message(), HasSubstr(std::to_string(33 * kPictureTokens)));
  EXPECT_THAT(refused.message(), HasSubstr("512"));
  EXPECT_EQ(tokens_of(front.read(question({bitmap(1)}))).size(), 12u) << "alive";
}

TEST(F47, ASeededAnswerIsTheSameBesideAnyBatchMate) {
  Request seeded = question({bitmap(9)}, 16);
  seeded.sampling.temperature = 1;
  seeded.sampling.seed = 42;
  Request unseeded = seeded;
  unseeded.sampling.seed.reset();
  Request mate = seeded;
  mate.sampling.seed = 43;
  Stack stack;
  const Tokens expected = tokens_of(stack.ask(seeded));
  for (int round = 0; round < 4; ++round) {
    for (const Request& beside : {unseeded, mate}) {
      const uint64_t other = stack.submit(beside);
      const uint64_t id = stack.submit(seeded);
      auto events = stack.finish();
      EXPECT_EQ(tokens_of(events[id]), expected);
      EXPECT_NE(tokens_of(events[other]), expected);
    }
  }
}

TEST(F47, FourChoicesAboutAPictureEachHaveTheirIndexEndAndTokens) {
  Request request = question({bitmap(9)}, 16);
  request.sampling.temperature = 1;
  request.sampling.seed = 42;
  request.sampling.n = 4;
  Stack stack;
  const auto events = stack.ask(request);
  std::set<Tokens> different;
  std::map<uint32_t, int> ends;
  int64_t n_tokens = 0;
  int64_t n_counted = 0;
  for (const SequenceEvent& event : events) {
    n_tokens += event.token.token >= 0;
    if (event.token.finish == FinishReason::kNone) continue;
    ++ends[event.token.choice];
    EXPECT_EQ(event.token.finish, FinishReason::kLength);
    n_counted += event.usage.completion_tokens;
  }
  EXPECT_EQ(ends, (std::map<uint32_t, int>{{0, 1}, {1, 1}, {2, 1}, {3, 1}}));
  EXPECT_EQ(n_counted, n_tokens);
  for (uint32_t choice = 0; choice < 4; ++choice) different.insert(tokens_of(events, choice));
  EXPECT_GT(different.size(), 1u);
  stack.expect_nothing_held();
}

}  // namespace
}  // namespace triptych
