// Reports about model mathematics and prompts (F23, F25, F49, F60, F61, F66), at the level where
// prep and engine meet.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "parity/runner.h"

namespace triptych {
namespace {

using parity::Runner;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kGoldens = "tests/parity/goldens/";

MediaItem picture(const std::string& name) {
  Result<std::string> bytes = read_file(kGoldens + ("pictures/" + name));
  EXPECT_TRUE(bytes.is_ok()) << bytes.status().message();
  return {Modality::kImage, name, std::make_shared<const std::string>(std::move(bytes).value())};
}

std::vector<std::string> pictures() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(kGoldens + std::string("pictures"))) {
    out.push_back(entry.path().filename().string());
  }
  return out;
}

Request question(const std::vector<std::string>& names, const std::string& text) {
  Request request;
  RequestMessage message{"user", {}};
  for (const std::string& name : names) {
    message.parts.push_back({{}, request.media.size()});
    request.media.push_back(picture(name));
  }
  message.parts.push_back({text, std::nullopt});
  request.messages.push_back(std::move(message));
  request.sampling.max_tokens = 12;
  request.sampling.ignore_eos = true;
  return request;
}

std::vector<int32_t> answer(Runner& runner, const Request& request) {
  Result<PreparedRequest> prepared = runner.prepare(request);
  EXPECT_TRUE(prepared.is_ok()) << prepared.status().message();
  std::vector<int32_t> out;
  if (!prepared.is_ok()) return out;
  const Result<uint64_t> id = runner.engine->submit(std::move(*prepared));
  EXPECT_TRUE(id.is_ok()) << id.status().message();
  while (!runner.engine->idle()) {
    const std::vector<SequenceEvent> events = runner.engine->step();
    if (events.empty()) continue;
    const TokenEvent* event = &events.front().token;
    EXPECT_NE(event->finish, FinishReason::kError) << event->error.message();
    if (event->token >= 0) out.push_back(event->token);
  }
  return out;
}

TEST(F23, AMarkerInTextStaysTextWithAndWithoutAPicture) {
  Result<Runner> runner = Runner::open(kGoldens + std::string("llava_clip/checkpoint"));
  ASSERT_TRUE(runner.is_ok()) << runner.status().message();
  for (const char* marker : {"<image>", "<__media__>", "<|image|>"}) {
    const Result<PreparedRequest> without =
        runner->prepare(question({}, fmt::format("say {} please", marker)));
    ASSERT_TRUE(without.is_ok()) << without.status().message();
    EXPECT_TRUE(without->spans.empty());
    const Result<PreparedRequest> with =
        runner->prepare(question({"waves_37x53.png"}, fmt::format("say {} please", marker)));
    ASSERT_TRUE(with.is_ok()) << with.status().message();
    EXPECT_EQ(with->spans.size(), 1u);
  }
}

TEST(F23, AMarkerInARawPromptIsRefusedBecauseNothingCouldFillIt) {
  Result<Runner> runner = Runner::open(kGoldens + std::string("llava_clip/checkpoint"));
  ASSERT_TRUE(runner.is_ok());
  Request request;
  request.raw_prompt = "USER: <image> hello";
  const Result<PreparedRequest> prepared = runner->prepare(request);
  EXPECT_EQ(prepared.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(prepared.status().message(), HasSubstr("carries no pictures"));
}

TEST(F25, PicturesKeepTheirOrderAmongTheText) {
  Result<Runner> runner = Runner::open("models/demo");
  ASSERT_TRUE(runner.is_ok()) << runner.status().message();
  const std::vector<std::string> names = pictures();
  ASSERT_GE(names.size(), 2u);
  Request request = question({names[0], names[1]}, "which?");
  // The second part names the first media item of the request: order is that of the parts.
  std::swap(request.messages[0].parts[0], request.messages[0].parts[1]);
  const Result<PreparedRequest> prepared = runner->prepare(request);
  ASSERT_TRUE(prepared.is_ok()) << prepared.status().message();
  ASSERT_EQ(prepared->spans.size(), 2u);
  EXPECT_EQ(prepared->spans[0].media, 1u);
  EXPECT_EQ(prepared->spans[1].media, 0u);
  EXPECT_LT(prepared->spans[0].position, prepared->spans[1].position);
}

TEST(F49, APromptThatOverflowsInsideAPictureIsRefusedWithLengths) {
  Result<Runner> runner = Runner::open("models/demo");
  ASSERT_TRUE(runner.is_ok());
  std::string text;
  while (text.size() < 3000) text += "what color is it? ";
  Request request = question({"waves_37x53.png"}, text);
  const Result<PreparedRequest> fits = runner->prepare(request);
  ASSERT_TRUE(fits.is_ok()) << fits.status().message();
  const auto n = static_cast<int64_t>(fits->ids.size());
  const Result<PreparedRequest> refused =
      runner->prep->prepare(request, n - 10, runner->engine->model_runner().pool(),
                            runner->engine->model_runner().registry());
  EXPECT_EQ(refused.status().code(), StatusCode::kOutOfRange);
  EXPECT_THAT(refused.status().message(), HasSubstr(std::to_string(n)));
  EXPECT_THAT(refused.status().message(), HasSubstr(std::to_string(n - 10)));
}

TEST(F60, EveryBlockStaysFiniteOverColoursAndSizes) {
  for (const std::string& model :
       {std::string("models/demo"), kGoldens + std::string("llava_siglip/checkpoint")}) {
    Result<Runner> runner = Runner::open(model);
    ASSERT_TRUE(runner.is_ok()) << runner.status().message();
    int64_t n_seen = 0;
    runner->engine->model_runner().registry().set_tap(
        [&](const std::string& name, const View& view) {
          ++n_seen;
          if (!view.is_dense()) return;
          for (int64_t i = 0; i < view.shape.n_elements(); ++i) {
            ASSERT_TRUE(std::isfinite(view.f32()[i])) << model << " " << name << " at " << i;
          }
        });
    for (const std::string& name : pictures()) {
      Request request = question({name}, "What is it?");
      request.sampling.max_tokens = 2;
      answer(*runner, request);
    }
    // A picture far outside what normalised pixels can be, as a broken file could make it.
    Request request = question({"waves_37x53.png"}, "What is it?");
    request.sampling.max_tokens = 2;
    Result<PreparedRequest> prepared = runner->prepare(request);
    ASSERT_TRUE(prepared.is_ok());
    const View pixels = prepared->media[0]->pixels.view();
    for (int64_t i = 0; i < pixels.shape.n_elements(); ++i) pixels.f32()[i] = 60;
    ASSERT_TRUE(runner->engine->submit(std::move(*prepared)).is_ok());
    while (!runner->engine->idle()) runner->engine->step();
    EXPECT_GT(n_seen, 0);
  }
}

TEST(F61, AnAnswerDoesNotDependOnWhatWasAskedBefore) {
  Result<Runner> runner = Runner::open(kGoldens + std::string("llava_clip/checkpoint"));
  ASSERT_TRUE(runner.is_ok());
  const std::vector<std::string> names = pictures();
  std::vector<std::vector<int32_t>> first;
  for (const std::string& name : names) first.push_back(answer(*runner, question({name}, "What?")));
  for (size_t i = names.size(); i-- > 0;) {
    EXPECT_EQ(answer(*runner, question({names[i]}, "What?")), first[i]) << names[i];
  }
}

std::string tiny_copy(const std::string& golden, const std::string& name) {
  const std::string folder = testing::TempDir() + name;
  fs::remove_all(folder);
  fs::copy(kGoldens + golden + "/checkpoint", folder);
  for (const auto& entry : fs::directory_iterator(folder)) {
    fs::permissions(entry, fs::perms::owner_read | fs::perms::owner_write);
  }
  return folder;
}

TEST(F66, AMissingHeadIsRefusedUnlessTheConfigTiesIt) {
  // Tied without a head loads (golden text_llama_tied); untied without one must not.
  const std::string folder = tiny_copy("text_llama_tied", "untied_without_head");
  std::string config = *read_file(folder + "/config.json");
  const size_t at = config.find("\"tie_word_embeddings\": true");
  ASSERT_NE(at, std::string::npos);
  config.replace(at, 27, "\"tie_word_embeddings\": false");
  ASSERT_TRUE(write_file(folder + "/config.json", config).is_ok());
  const Result<Runner> runner = Runner::open(folder);
  ASSERT_FALSE(runner.is_ok());
  EXPECT_THAT(runner.status().message(), HasSubstr("lm_head.weight"));
}

}  // namespace
}  // namespace triptych
