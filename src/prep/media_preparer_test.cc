#include "prep/media_preparer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/file.h"
#include "models/registry.h"

namespace triptych {
namespace {

constexpr const char* kDemo = "models/demo";
constexpr const char* kPictures = "tests/eval/demo/images/";

/// The demo model's preparation, counting the pictures that are decoded.
struct Prep {
  TensorRegistry registry;
  int n_decoded = 0;
  std::unique_ptr<MediaPreparer> preparer;
  ThreadPool pool{1};

  explicit Prep(const PrepOptions& options = {}) {
    registry.set_sink([this](const TensorRecord& r) { n_decoded += r.name == "pixel_values"; });
    const auto checkpoint = Checkpoint::open(kDemo);
    EXPECT_TRUE(checkpoint.is_ok());
    const auto spec = parse_model_spec(**checkpoint);
    EXPECT_TRUE(spec.is_ok());
    auto loaded = Preprocessor::load(**checkpoint, *spec, options);
    EXPECT_TRUE(loaded.is_ok()) << loaded.status().message();
    preparer = std::make_unique<MediaPreparer>(std::move(*loaded), 4096, registry, 64 << 20);
  }
};

Request about(const std::vector<std::string>& pictures) {
  Request out;
  RequestMessage message{"user", {}};
  for (const std::string& name : pictures) {
    Result<std::string> bytes = read_file(kPictures + name);
    EXPECT_TRUE(bytes.is_ok());
    message.parts.push_back({{}, out.media.size()});
    out.media.push_back(
        {Modality::kImage, name, std::make_shared<const std::string>(std::move(*bytes))});
  }
  message.parts.push_back({"What is it?", std::nullopt});
  out.messages.push_back(std::move(message));
  return out;
}

TEST(MediaPreparer, TheSamePictureInOneRequestIsDecodedOnce) {
  Prep prep;
  const auto prepared = prep.preparer->prepare(about({"042.jpg", "000.jpg", "042.jpg"}),
                                               {prep.pool, 0, [](PrepStage) { return true; }});
  ASSERT_TRUE(prepared.is_ok()) << prepared.status().message();
  ASSERT_EQ(prepared->media.size(), 3u);
  EXPECT_EQ(prepared->media[0], prepared->media[2]);
  EXPECT_NE(prepared->media[0]->id, prepared->media[1]->id);
  EXPECT_EQ(prepared->spans[2].media, 2u);
  EXPECT_EQ(prep.n_decoded, 2);
}

TEST(MediaPreparer, APictureThatComesAgainIsDecodedAgainOnlyForAnotherTenant) {
  Prep prep;
  const auto begin = [](PrepStage) { return true; };
  std::vector<std::shared_ptr<const PreparedMedia>> seen;
  for (const uint32_t tenant : {0, 0, 1}) {
    const auto prepared = prep.preparer->prepare(about({"042.jpg"}), {prep.pool, tenant, begin});
    ASSERT_TRUE(prepared.is_ok()) << prepared.status().message();
    seen.push_back(prepared->media[0]);
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_NE(seen[0], seen[2]);
  EXPECT_EQ(prep.n_decoded, 2);
}

TEST(MediaPreparer, StopsBetweenTwoPicturesWhenNobodyWaits) {
  Prep prep;
  int n_asked = 0;
  const auto begin = [&](PrepStage stage) { return stage != PrepStage::kDecode || ++n_asked == 1; };
  const auto prepared =
      prep.preparer->prepare(about({"042.jpg", "000.jpg"}), {prep.pool, 0, begin});
  EXPECT_EQ(prepared.status().code(), StatusCode::kCancelled);
  EXPECT_EQ(prep.n_decoded, 1);
}

TEST(MediaPreparer, CostCountsPicturesAndTextAndDecodesNothing) {
  Prep prep;
  const auto text = prep.preparer->cost(about({}));
  const auto picture = prep.preparer->cost(about({"042.jpg"}));
  ASSERT_TRUE(text.is_ok() && picture.is_ok());
  EXPECT_EQ(text->host_bytes, 11u + 11 * sizeof(int32_t));
  EXPECT_EQ(picture->n_media, 1);
  EXPECT_GT(picture->host_bytes, text->host_bytes + 3 * sizeof(float) * 100 * 100);
  EXPECT_EQ(prep.n_decoded, 0);
}

TEST(MediaPreparer, ASandboxChangesNoPixel) {
  const auto sandbox = Sandbox::start();
  ASSERT_TRUE(sandbox.is_ok()) << sandbox.status().message();
  Prep in_process;
  Prep sandboxed({.sandbox = *sandbox});
  const Request request = about({"042.jpg", "074.jpg"});
  const PrepContext context{in_process.pool, 0, [](PrepStage) { return true; }};
  const auto here = in_process.preparer->prepare(request, context);
  const auto there = sandboxed.preparer->prepare(request, context);
  ASSERT_TRUE(here.is_ok() && there.is_ok());
  for (size_t i = 0; i < 2; ++i) {
    const Tensor& a = here->media[i]->pixels;
    const Tensor& b = there->media[i]->pixels;
    EXPECT_EQ(here->media[i]->id, there->media[i]->id);
    ASSERT_EQ(a.n_bytes(), b.n_bytes());
    EXPECT_EQ(std::memcmp(a.f32(), b.f32(), static_cast<size_t>(a.n_bytes())), 0);
  }
}

TEST(MediaPreparer, ABrokenPictureIsNamed) {
  Prep prep;
  Request request = about({"042.jpg"});
  request.media[0].name = "messages[0].content[0]";
  request.media[0].bytes =
      std::make_shared<const std::string>(request.media[0].bytes->substr(0, 900));
  const auto prepared =
      prep.preparer->prepare(request, {prep.pool, 0, [](PrepStage) { return true; }});
  ASSERT_FALSE(prepared.is_ok());
  EXPECT_TRUE(prepared.status().message().starts_with("messages[0].content[0]: "))
      << prepared.status().message();
}

}  // namespace
}  // namespace triptych
