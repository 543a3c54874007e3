// What goes wrong in the machine, and who feels it: over a fake machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/json.h"
#include "engine/multimodal_engine.h"
#include "engine/test_fakes.h"

namespace triptych {
namespace {

using testing::HasSubstr;

/// An engine over a machine that the test may break, and a folder for what it then writes.
struct Rig {
  FakeRunner* runner = nullptr;
  std::string folder;
  std::unique_ptr<Engine> engine;

  explicit Rig(const std::string& name) : folder(testing::TempDir() + name) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    auto fake = std::make_unique<FakeRunner>();
    runner = fake.get();
    EngineConfig config;
    config.failure_folder = folder;
    config.check_invariants = true;
    auto created = Engine::create(std::move(fake), config, [] { return 0.0; });
    EXPECT_TRUE(created.is_ok()) << created.status().message();
    engine = std::move(*created);
  }

  uint64_t submit(PreparedRequest request) const {
    const auto id = engine->submit(std::move(request));
    EXPECT_TRUE(id.is_ok()) << id.status().message();
    return id.is_ok() ? *id : 0;
  }
  /// The last events of all requests, by id.
  std::map<uint64_t, TokenEvent> finish() const {
    std::map<uint64_t, TokenEvent> out;
    while (!engine->idle()) {
      for (const SequenceEvent& event : engine->step()) out[event.token.sequence] = event.token;
    }
    return out;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      out.push_back(entry.path());
    }
    return out;
  }
};

TEST(Failure, NumbersThatBrokeInOneSequenceEndItAlone) {
  const Rig rig("nan");
  rig.runner->nan_behind = 5;
  const uint64_t good = rig.submit(fake_prompt({1, 2, 3}, 4));
  const uint64_t bad = rig.submit(fake_prompt({1, 2, 5}, 4));
  const auto ends = rig.finish();
  EXPECT_EQ(ends.at(good).finish, FinishReason::kLength);
  EXPECT_EQ(ends.at(bad).error.code(), StatusCode::kInternal);
  EXPECT_TRUE(rig.engine->failure().is_ok());
  EXPECT_TRUE(rig.files().empty());
  EXPECT_EQ(rig.runner->pages().n_free() + rig.runner->pages().n_reclaimable(),
            rig.runner->pages().n_pages());
}

TEST(Failure, AForwardPassWithoutMemoryLeavesTheEngineUsable) {
  const Rig rig("memory");
  rig.submit(fake_prompt({1, 2, 3}, 4));
  rig.runner->forward_error = resource_exhausted("no scratch memory");
  EXPECT_EQ(rig.finish().begin()->second.error.code(), StatusCode::kResourceExhausted);
  rig.runner->forward_error = Status::ok();
  const uint64_t next = rig.submit(fake_prompt({1, 2, 3}, 4));
  EXPECT_EQ(rig.finish().at(next).finish, FinishReason::kLength);
  EXPECT_TRUE(rig.files().empty());
}

TEST(Failure, AForwardPassThatIsOurFaultLeavesASnapshotAndTheEngineDrains) {
  const Rig rig("forward");
  PreparedRequest request = fake_prompt({1, 2, 3}, 4);
  request.spans.push_back({0, kFakePictureTokens, 0});
  request.media.push_back(fake_picture(9));
  request.ids.insert(request.ids.begin(), kFakePictureTokens, 7);
  const uint64_t id = rig.submit(std::move(request));
  rig.runner->forward_error = internal_error("kernel says no");
  const auto ends = rig.finish();
  ASSERT_EQ(rig.files().size(), 1u);
  const std::string file = rig.files()[0];
  EXPECT_THAT(ends.at(id).error.message(), HasSubstr("kernel says no"));
  EXPECT_THAT(ends.at(id).error.message(), HasSubstr(file));

  const Status refused = rig.engine->submit(fake_prompt({1, 2, 3}, 4)).status();
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  EXPECT_THAT(refused.message(), HasSubstr("kernel says no"));

  const Result<Json> json = parse_json_file(file);
  ASSERT_TRUE(json.is_ok()) << json.status().message();
  EXPECT_EQ(json->find("error")->find("message")->string_value(), "kernel says no");
  const Json& sequence = json->find("sequences")->elements().at(0);
  EXPECT_EQ(sequence.find("prompt_tokens")->int_value(), 3 + kFakePictureTokens);
  EXPECT_TRUE(sequence.find("media")->elements().at(0).find("encoded")->bool_value());
  EXPECT_EQ(sequence.find("pages")->elements().size(),
            json->find("pages")->find("held")->elements().size());
  EXPECT_EQ(json->find("caches")->find("encoder")->find("items")->int_value(), 1);
  EXPECT_FALSE(json->find("plan")->find("rows")->elements().empty());
}

TEST(Failure, ThoseWhoWereNotInTheStepGoOn) {
  const Rig rig("others");
  std::vector<uint64_t> ids;
  for (int i = 0; i < 7; ++i) {  // six run at once
    ids.push_back(rig.submit(fake_prompt({1, 2, i}, 4)));
  }
  rig.runner->forward_error = internal_error("once");
  rig.engine->step();
  rig.runner->forward_error = Status::ok();
  EXPECT_FALSE(rig.engine->failure().is_ok());
  EXPECT_FALSE(rig.engine->idle());
  for (const auto& [id, last] : rig.finish()) EXPECT_EQ(last.finish, FinishReason::kLength);
}

TEST(Failure, ABrokenInvariantEndsAll) {
  const Rig rig("invariant");
  rig.submit(fake_prompt({1, 2, 3}, 100));
  rig.submit(fake_prompt({1, 2, 4}, 100));
  rig.engine->step();
  rig.runner->pages().share(0);  // a reference that nobody holds
  const auto ends = rig.finish();
  EXPECT_EQ(ends.size(), 2u);
  for (const auto& [id, last] : ends) EXPECT_EQ(last.error.code(), StatusCode::kInternal);
  EXPECT_EQ(rig.files().size(), 1u);
}

TEST(Failure, WithoutAFolderTheErrorSaysSo) {
  auto runner = std::make_unique<FakeRunner>();
  runner->forward_error = internal_error("kernel says no");
  const auto engine = Engine::create(std::move(runner), {}, [] { return 0.0; });
  ASSERT_TRUE((*engine)->submit(fake_prompt({1, 2, 3}, 4)).is_ok());
  while (!(*engine)->idle()) (*engine)->step();
  EXPECT_THAT((*engine)->failure().message(), HasSubstr("failure_folder"));
}

TEST(Failure, TheFrontHearsOfItBeforeItSubmitsAgain) {
  auto runner = std::make_unique<FakeRunner>();
  runner->forward_error = internal_error("kernel says no");
  auto inner = Engine::create(std::move(runner), {}, [] { return 0.0; });
  MultiModalEngine engine(std::move(*inner), std::make_shared<FakePreparer>(), {});
  EXPECT_EQ(engine.snapshot().health, EngineHealth::kReady);
  const auto stream = engine.submit(ask("\1", 2));
  ASSERT_TRUE(stream.is_ok());
  const auto event = (*stream)->next(std::chrono::seconds(60));
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->token.error.code(), StatusCode::kInternal);
  EXPECT_EQ(engine.snapshot().health, EngineHealth::kFailed);
  const Status refused = engine.submit(ask("\1", 2)).status();
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  EXPECT_THAT(refused.message(), HasSubstr("kernel says no"));
  engine.drain();
}

}  // namespace
}  // namespace triptych
