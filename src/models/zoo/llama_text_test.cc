#include "models/zoo/llama_text.h"

#include <gmock/gmock.h>

namespace triptych {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The windows of three layers of a config with these members.
Result<std::vector<int64_t>> windows(const std::string& members) {
  const std::string config = R"({"model_type": "qwen3", "max_window_layers": 1)" + members + "}";
  TRIPTYCH_ASSIGN_OR_RETURN(const Json json, parse_json(config));
  TRIPTYCH_ASSIGN_OR_RETURN(const ConfigReader reader, ConfigReader::create(json, "config.json"));
  return parse_layer_windows(reader.root(), 3);
}

TEST(LayerWindows, NothingSlidesUnlessSwitchedOn) {
  EXPECT_THAT(*windows(R"(, "sliding_window": 6)"), ElementsAre(0, 0, 0));
  EXPECT_THAT(*windows(R"(, "use_sliding_window": true, "sliding_window": null)"),
              ElementsAre(0, 0, 0));
}

TEST(LayerWindows, LayersFromMaxWindowLayersOnSlide) {
  EXPECT_THAT(*windows(R"(, "use_sliding_window": true, "sliding_window": 6)"),
              ElementsAre(0, 6, 6));
  EXPECT_THAT(*windows(R"(, "use_sliding_window": true, "sliding_window": 6, "layer_types": null)"),
              ElementsAre(0, 6, 6));
}

TEST(LayerWindows, LayerTypesWin) {
  EXPECT_THAT(*windows(R"(, "use_sliding_window": true, "sliding_window": 6, "layer_types":
                          ["sliding_attention", "full_attention", "sliding_attention"])"),
              ElementsAre(6, 0, 6));
  EXPECT_THAT(
      *windows(R"(, "layer_types": ["full_attention", "full_attention", "full_attention"])"),
      ElementsAre(0, 0, 0));
}

TEST(LayerWindows, WrongLayerTypesAreNamed) {
  const auto message = [](const std::string& types) {
    const auto result = windows(R"(, "layer_types": )" + types);
    return result.is_ok() ? "" : result.status().message();
  };
  EXPECT_THAT(message(R"(["full_attention"])"), HasSubstr("layer_types: expected a list of 3"));
  EXPECT_THAT(message(R"("full_attention")"), HasSubstr("layer_types: expected a list of 3"));
  EXPECT_THAT(message(R"(["full_attention", "chunked_attention", "full_attention"])"),
              HasSubstr("layer_types[1]: \"chunked_attention\" is unknown"));
  EXPECT_THAT(message(R"(["full_attention", "full_attention", "sliding_attention"])"),
              HasSubstr("layer_types[2]: slides, but use_sliding_window is false"));
}

}  // namespace
}  // namespace triptych
