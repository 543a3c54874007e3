#include "weights/config_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weights/config_defaults.h"

namespace triptych {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A reader together with the config it borrows.
struct Config {
  explicit Config(std::string_view text)
      : json(parse_json(text).value()), reader(ConfigReader::create(json, "config.json")) {}
  ConfigSection text() const { return reader->text().value(); }
  ConfigSection vision() const { return reader->vision().value(); }
  Json json;
  Result<ConfigReader> reader;
};

TEST(ConfigDefaults, EveryRowParses) {
  for (const char* type : {"llava", "llama", "mistral", "qwen2", "qwen3", "clip_vision_model",
                           "siglip_vision_model"}) {
    ASSERT_NE(config_defaults(type), nullptr) << type;
    EXPECT_TRUE(config_defaults(type)->is_object()) << type;
  }
  EXPECT_EQ(config_defaults("gpt9"), nullptr);
}

TEST(ConfigReader, PartThenRootThenClassDefault) {
  const Config c(R"({"model_type": "llava", "vocab_size": 9, "rms_norm_eps": 0.5,
                     "text_config": {"model_type": "mistral", "rms_norm_eps": 0.25}})");
  EXPECT_EQ(c.text().get_number("rms_norm_eps", 0, 1).value(), 0.25);
  EXPECT_EQ(c.text().get_int("vocab_size", 1, 100).value(), 9);
  EXPECT_EQ(c.text().get_int("intermediate_size", 1, 100'000).value(), 14336);
  EXPECT_EQ(c.text().model_type(), "mistral");
}

TEST(ConfigReader, TheVisionPartDoesNotSeeTheRoot) {
  const Config c(R"({"model_type": "llava", "hidden_size": 64,
                     "vision_config": {"model_type": "siglip_vision_model"}})");
  EXPECT_EQ(c.vision().get_int("hidden_size", 1, 10'000).value(), 768);
  EXPECT_EQ(c.vision().get_bool("vision_use_head").value(), true);
}

TEST(ConfigReader, PartsOfLlavaThatAreAbsent) {
  const Config c(R"({"model_type": "llava"})");
  EXPECT_EQ(c.vision().model_type(), "clip_vision_model");
  EXPECT_EQ(c.vision().get_int("hidden_size", 1, 10'000).value(), 1024);
  EXPECT_EQ(c.vision().get_number("layer_norm_eps", 0, 1).value(), 1e-5);
  EXPECT_THAT(c.vision().get_size("image_size", 1, 10'000).value(), ElementsAre(336, 336));
  EXPECT_EQ(c.text().model_type(), "llama");
  EXPECT_EQ(c.text().get_int("hidden_size", 1, 10'000).value(), 4096);
  EXPECT_EQ(c.reader->image_token_id().value(), 32000);
  EXPECT_THAT(c.reader->root().find_ints("vision_feature_layer", -100, 100).value(),
              ElementsAre(-2));
}

TEST(ConfigReader, PartsWithoutATypeAreOfTheAssumedOne) {
  const Config c(R"({"model_type": "llava", "vision_config": {"hidden_size": 32},
                     "text_config": {"hidden_size": 16}})");
  EXPECT_EQ(c.vision().model_type(), "clip_vision_model");
  // The size of a part that is there comes from its own class, not from llava's tower.
  EXPECT_EQ(c.vision().get_int("num_hidden_layers", 1, 100).value(), 12);
  EXPECT_EQ(c.text().model_type(), "llama");
}

TEST(ConfigReader, TextOnlyModelsReadTheRoot) {
  const Config c(R"({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"],
                     "hidden_size": 8})");
  EXPECT_EQ(c.reader->architecture(), "Qwen2ForCausalLM");
  EXPECT_EQ(c.text().model_type(), "qwen2");
  EXPECT_EQ(c.text().get_int("hidden_size", 1, 100).value(), 8);
  EXPECT_EQ(c.text().get_int("max_position_embeddings", 1, 100'000).value(), 32768);
  EXPECT_EQ(c.reader->vision().status().message(), "config.json: vision_config: is missing");
}

TEST(ConfigReader, NullIsAValueOfItsOwn) {
  const Config c(R"({"model_type": "mistral", "sliding_window": null, "hidden_size": null,
                     "num_key_value_heads": null})");
  EXPECT_EQ(c.text().find_int("sliding_window", 1, 100'000).value(), std::nullopt);
  EXPECT_EQ(c.text().find_int("num_key_value_heads", 1, 100).value(), std::nullopt);
  EXPECT_EQ(c.text().get_int("hidden_size", 1, 100).status().message(),
            "config.json: hidden_size: is null, expected a value");
  const Config absent(R"({"model_type": "mistral"})");
  EXPECT_EQ(absent.text().find_int("sliding_window", 1, 100'000).value(), 4096);
  EXPECT_EQ(absent.text().find_int("num_key_value_heads", 1, 100).value(), 8);
}

TEST(ConfigReader, ErrorsNameFileAndKey) {
  const Config c(R"({"model_type": "llava", "text_config": {"hidden_size": "big",
                     "num_hidden_layers": 0, "rms_norm_eps": [], "eos_token_id": [1, "x"]},
                     "vision_config": {"image_size": [1, 2, 3]}})");
  EXPECT_EQ(c.text().get_int("hidden_size", 1, 9).status().message(),
            "config.json: text_config.hidden_size: expected an integer, found a string");
  EXPECT_THAT(c.text().get_int("num_hidden_layers", 1, 9).status().message(),
              HasSubstr("config.json: text_config.num_hidden_layers: 0 is outside"));
  EXPECT_THAT(c.text().get_number("rms_norm_eps", 0, 1).status().message(),
              HasSubstr("text_config.rms_norm_eps: expected a number"));
  EXPECT_THAT(c.text().find_ints("eos_token_id", 0, 9).status().message(),
              HasSubstr("text_config.eos_token_id[1]"));
  EXPECT_THAT(
      c.text().get_int("no_such", 0, 1).status().message(),
      HasSubstr("text_config.no_such: is missing, and model type \"llama\" has no default"));
  EXPECT_THAT(c.vision().get_size("image_size", 1, 9).status().message(),
              HasSubstr("vision_config.image_size: expected an integer or [height, width]"));
  EXPECT_EQ(c.text().error("hidden_act", "x").message(), "config.json: text_config.hidden_act: x");
}

TEST(ConfigReader, RefusesConfigsWithoutAModel) {
  EXPECT_EQ(Config("[]").reader.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Config("{}").reader.status().message(), "config.json: model_type: is missing");
  EXPECT_FALSE(Config(R"({"model_type": 3})").reader.is_ok());
  EXPECT_FALSE(Config(R"({"model_type": "llama", "architectures": "x"})").reader.is_ok());
  EXPECT_FALSE(Config(R"({"model_type": "llava", "text_config": []})").reader->text().is_ok());
}

TEST(ConfigReader, EndTokensAreOneOrSeveral) {
  EXPECT_THAT(Config(R"({"model_type": "llama", "eos_token_id": [5, 6]})")
                  .text()
                  .find_ints("eos_token_id", 0, 100)
                  .value(),
              ElementsAre(5, 6));
  EXPECT_THAT(Config(R"({"model_type": "llama"})").text().find_ints("eos_token_id", 0, 9).value(),
              ElementsAre(2));
  EXPECT_THAT(Config(R"({"model_type": "llama", "eos_token_id": null})")
                  .text()
                  .find_ints("eos_token_id", 0, 9)
                  .value(),
              IsEmpty());
}

TEST(ConfigReader, ImageTokenUnderEitherName) {
  EXPECT_EQ(
      Config(R"({"model_type": "llava", "image_token_id": 7})").reader->image_token_id().value(),
      7);
  EXPECT_EQ(
      Config(R"({"model_type": "llava", "image_token_index": 8})").reader->image_token_id().value(),
      8);
  EXPECT_THAT(Config(R"({"model_type": "llava", "image_token_id": 7, "image_token_index": 8})")
                  .reader->image_token_id()
                  .status()
                  .message(),
              HasSubstr("image_token_index: 8 contradicts image_token_id 7"));
}

TEST(ConfigReader, TiedWhenEitherPartSaysSo) {
  const auto tied = [](const char* text) { return Config(text).reader->tied_embeddings().value(); };
  EXPECT_FALSE(tied(R"({"model_type": "llava", "text_config": {}})"));
  EXPECT_TRUE(tied(R"({"model_type": "llava", "tie_word_embeddings": true, "text_config": {}})"));
  EXPECT_TRUE(tied(R"({"model_type": "llava", "tie_word_embeddings": false,
                       "text_config": {"tie_word_embeddings": true}})"));
  EXPECT_TRUE(tied(R"({"model_type": "llama", "tie_word_embeddings": true})"));
  EXPECT_FALSE(tied(R"({"model_type": "llama"})"));
}

TEST(ConfigReader, NumberFormatUnderEitherName) {
  const auto dtype = [](const char* text) { return Config(text).reader->dtype(); };
  EXPECT_EQ(dtype(R"({"model_type": "llama", "dtype": "bfloat16"})").value(), DType::kBF16);
  EXPECT_EQ(dtype(R"({"model_type": "llama", "torch_dtype": "torch.float16"})").value(),
            DType::kF16);
  EXPECT_EQ(dtype(R"({"model_type": "llava", "text_config": {"dtype": "float32"}})").value(),
            DType::kF32);
  EXPECT_EQ(dtype(R"({"model_type": "llama"})").value(), std::nullopt);
  EXPECT_THAT(dtype(R"({"model_type": "llama", "dtype": "int3"})").status().message(),
              HasSubstr("config.json: dtype: \"int3\" is unknown"));
}

}  // namespace
}  // namespace triptych
