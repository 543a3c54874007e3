#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weights/config_reader.h"

namespace triptych {
namespace {

using testing::HasSubstr;

Result<RopeConfig> rope_of(const std::string& members, const std::string& model_type = "llama") {
  const Json json = parse_json(R"({"model_type": ")" + model_type + "\"" + members + "}").value();
  const auto reader = ConfigReader::create(json, "config.json");
  return read_rope(reader->text().value());
}

TEST(RopeConfig, DefaultsOfTheClass) {
  const RopeConfig rope = rope_of("").value();
  EXPECT_EQ(rope.type, RopeType::kDefault);
  EXPECT_EQ(rope.theta, 10000.0);
  EXPECT_EQ(rope.partial_rotary_factor, 1.0);
  EXPECT_EQ(rope.original_max_position_embeddings, 2048);
}

TEST(RopeConfig, ThreeSpellingsOfOneThing) {
  for (const char* members :
       {R"(, "rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 4})",
        R"(, "rope_theta": 5e5, "rope_scaling": {"rope_type": "linear", "factor": 4.0})",
        R"(, "rope_parameters": {"rope_type": "linear", "factor": 4, "rope_theta": 500000})",
        R"(, "rope_theta": 1, "rope_scaling": null,
             "rope_parameters": {"rope_type": "linear", "factor": 4, "rope_theta": 500000})",
        R"(, "rope_scaling": {"rope_type": "linear", "factor": 4},
             "rope_parameters": {"rope_type": "default", "rope_theta": 500000})"}) {
    const auto rope = rope_of(members);
    ASSERT_TRUE(rope.is_ok()) << rope.status().message();
    EXPECT_EQ(rope->type, RopeType::kLinear) << members;
    EXPECT_EQ(rope->factor, 4) << members;
    EXPECT_EQ(rope->theta, 500000) << members;
  }
}

TEST(RopeConfig, Llama3) {
  const std::string scaling = R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
      "high_freq_factor": 4, "original_max_position_embeddings": 8192})";
  const auto rope = rope_of(R"(, "max_position_embeddings": 131072, "rope_scaling": )" + scaling);
  ASSERT_TRUE(rope.is_ok()) << rope.status().message();
  EXPECT_EQ(rope->type, RopeType::kLlama3);
  EXPECT_EQ(rope->factor, 8);
  EXPECT_EQ(rope->original_max_position_embeddings, 8192);
}

TEST(RopeConfig, Yarn) {
  const auto rope = rope_of(R"(, "max_position_embeddings": 131072, "rope_scaling":
      {"type": "yarn", "factor": 4, "original_max_position_embeddings": 32768,
       "attention_factor": 1.2, "beta_fast": 16, "beta_slow": null, "mscale": 0.7,
       "truncate": false})",
                            "qwen2");
  ASSERT_TRUE(rope.is_ok()) << rope.status().message();
  EXPECT_EQ(rope->type, RopeType::kYarn);
  EXPECT_EQ(rope->original_max_position_embeddings, 32768);
  EXPECT_EQ(rope->attention_factor, 1.2);
  EXPECT_EQ(rope->beta_fast, 16);
  EXPECT_EQ(rope->beta_slow, 1);
  EXPECT_EQ(rope->mscale, 0.7);
  EXPECT_EQ(rope->mscale_all_dim, std::nullopt);
  EXPECT_FALSE(rope->truncate);
}

TEST(RopeConfig, YarnWithoutFactorTakesTheRatioOfContexts) {
  const auto rope = rope_of(R"(, "max_position_embeddings": 8192, "rope_scaling":
      {"rope_type": "yarn", "factor": null, "original_max_position_embeddings": 2048})");
  ASSERT_TRUE(rope.is_ok()) << rope.status().message();
  EXPECT_EQ(rope->factor, 4);
}

TEST(RopeConfig, BadValuesNameTheirKey) {
  const auto message = [](const std::string& members) {
    return rope_of(members).status().message();
  };
  EXPECT_THAT(message(R"(, "rope_theta": 0)"), HasSubstr("config.json: rope_theta: 0 is outside"));
  EXPECT_THAT(message(R"(, "rope_theta": "x")"), HasSubstr("rope_theta: expected a number"));
  EXPECT_THAT(message(R"(, "rope_scaling": [])"),
              HasSubstr("rope_scaling: expected a JSON object"));
  EXPECT_THAT(message(R"(, "rope_scaling": {"type": "linear"})"),
              HasSubstr("rope_scaling.factor: expected a number, found null"));
  EXPECT_THAT(message(R"(, "rope_scaling": {"type": "linear", "factor": -1})"),
              HasSubstr("rope_scaling.factor: -1 is outside"));
  EXPECT_THAT(message(R"(, "rope_scaling": {"type": "llama3", "factor": 8, "low_freq_factor": 4,
                           "high_freq_factor": 4})"),
              HasSubstr("high_freq_factor: 4 is not above"));
  EXPECT_THAT(message(R"(, "rope_parameters": {"rope_type": "yarn", "factor": 2,
                           "original_max_position_embeddings": 0})"),
              HasSubstr("rope_parameters.original_max_position_embeddings"));
  EXPECT_THAT(message(R"(, "partial_rotary_factor": 2)"), HasSubstr("partial_rotary_factor"));
}

TEST(RopeConfig, NamesTypesThatAreNotSupported) {
  const auto longrope = rope_of(R"(, "rope_scaling": {"type": "longrope"})").status();
  EXPECT_EQ(longrope.code(), StatusCode::kUnsupported);
  EXPECT_THAT(longrope.message(),
              HasSubstr("config.json: rope_scaling.type: rope type \"longrope\""));
  EXPECT_EQ(rope_of(R"(, "rope_parameters": {"full_attention": {}})").status().code(),
            StatusCode::kUnsupported);
}

}  // namespace
}  // namespace triptych
