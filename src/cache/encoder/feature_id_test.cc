#include "cache/encoder/feature_id.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "text/blake3.h"

namespace triptych {
namespace {

TEST(FeatureId, EveryPartCounts) {
  FeatureSource source{.n_frames = 1, .height = 30, .width = 100, .tower = "t", .tenant = "a"};
  std::set<MediaId> ids = {feature_id(source)};
  FeatureSource turned = source;
  std::swap(turned.height, turned.width);
  ids.insert(feature_id(turned));
  FeatureSource strip = source;  // as many pixels once more, as frames
  strip.n_frames = 30;
  strip.height = 1;
  ids.insert(feature_id(strip));
  FeatureSource other_pixels = source;
  other_pixels.pixels[31] = 1;
  ids.insert(feature_id(other_pixels));
  FeatureSource other_tower = source;
  other_tower.tower = "u";
  ids.insert(feature_id(other_tower));
  FeatureSource other_tenant = source;
  other_tenant.tenant = "b";
  ids.insert(feature_id(other_tenant));
  FeatureSource run_together = source;
  run_together.tower = "ta";
  run_together.tenant = "";
  ids.insert(feature_id(run_together));
  EXPECT_EQ(ids.size(), 7u);
}

TEST(FeatureId, FramesInAnotherOrderAreAnotherClip) {
  // As prep chains a clip's pixels: the frames' ids in order, each framed by its length.
  const auto clip = [](std::string_view a, std::string_view b) {
    Blake3Hasher hasher;
    hasher.update_framed(a);
    hasher.update_framed(b);
    return feature_id({.pixels = hasher.hash(), .n_frames = 2, .height = 8, .width = 8});
  };
  EXPECT_NE(clip("one", "two"), clip("two", "one"));
  EXPECT_NE(clip("one", "two"), clip("onet", "wo"));
}

TEST(FeatureId, TensOfThousandsOfNearCollisionsAllDiffer) {
  std::set<MediaId> ids;
  size_t n = 0;
  for (int64_t height = 1; height <= 100; ++height) {
    for (int64_t width = 1; width <= 100; ++width) {
      for (const char* tenant : {"", "1", "11"}) {
        const std::string tower = tenant == std::string("1") ? "1" : "11";
        ids.insert(
            feature_id({.height = height, .width = width, .tower = tower, .tenant = tenant}));
        ++n;
      }
    }
  }
  EXPECT_EQ(ids.size(), n);
}

}  // namespace
}  // namespace triptych
