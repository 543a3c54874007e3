#include "weights/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weights/checkpoint_fixture.h"

namespace triptych {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Loader : public testing::Test {
 protected:
  Loader() {
    folder_.write("config.json", R"({"model_type": "llama"})");
    folder_.write(
        "model.safetensors",
        safetensors_bytes(
            {{"model.norm.weight", "BF16", {2}, bf16_bytes({1.5F, -2})},
             {"model.layers.0.self_attn.q_proj.weight", "F16", {1, 2}, f16_bytes({0.25F, 3})},
             {"model.layers.0.self_attn.q_proj.bias", "F32", {1}, f32_bytes({9})},
             {"model.rotary_emb.inv_freq", "F32", {1}, f32_bytes({1})},
             {"model.embed_tokens.weight", "F8_E4M3", {1, 1}, "x"},
             {"vision_tower.vision_model.embeddings.position_ids",
              "I64",
              {1, 1},
              std::string(8, '\0')}}));
    auto opened = Checkpoint::open(folder_.path());
    EXPECT_TRUE(opened.is_ok()) << opened.status().message();
    checkpoint_ = std::move(opened).value();
  }

  TempFolder folder_;
  std::unique_ptr<Checkpoint> checkpoint_;
};

TEST_F(Loader, TakesFloatsOfAnyTypeAsF32) {
  WeightLoader loader(*checkpoint_);
  EXPECT_THAT(loader.take_f32("text.norm.weight", {2}).value(), ElementsAre(1.5F, -2.0F));
  EXPECT_THAT(loader.take_f32("text.layers.0.self_attn.q_proj.weight", {1, 2}).value(),
              ElementsAre(0.25F, 3.0F));
  EXPECT_THAT(loader.take_f32("text.layers.0.self_attn.q_proj.bias", {1}).value(),
              ElementsAre(9.0F));
}

TEST_F(Loader, NamesExpectedAndFoundShape) {
  WeightLoader loader(*checkpoint_);
  const Status status = loader.take("text.norm.weight", {3}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("model.safetensors: tensor \"model.norm.weight\" "
                                          "(text.norm.weight): expected shape [3], found [2]"));
}

TEST_F(Loader, NamesNearMissesOfAMissingTensor) {
  WeightLoader loader(*checkpoint_);
  const Status status = loader.take("text.layers.0.self_attn.k_proj.weight", {1, 2}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("\"text.layers.0.self_attn.k_proj.weight\" of shape "
                                          "[1, 2] is missing"));
  EXPECT_THAT(status.message(), HasSubstr("model.layers.0.self_attn.q_proj.weight"));
  EXPECT_THAT(loader.take("proj.linear_1.weight", {1}).status().message(),
              Not(HasSubstr("near it")));
}

TEST_F(Loader, NamesTypesThatCannotBeBound) {
  WeightLoader loader(*checkpoint_);
  const Status status = loader.take("text.embed_tokens.weight", {1, 1}).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("model.embed_tokens.weight"));
  EXPECT_THAT(status.message(), HasSubstr("found F8_E4M3"));
  EXPECT_EQ(loader.take_f32("vision.embeddings.position_ids", {1, 1}).status().code(),
            StatusCode::kUnsupported);
}

TEST_F(Loader, OptionalTensorsMayBeAbsentButNotWrong) {
  WeightLoader loader(*checkpoint_);
  EXPECT_EQ(loader.take_optional("lm_head.weight", {1, 1}).value(), nullptr);
  EXPECT_TRUE(loader.take_f32_optional("lm_head.bias", {1}).value().empty());
  EXPECT_FALSE(loader.take_optional("text.norm.weight", {7}).is_ok());
  EXPECT_NE(loader.take_optional("text.norm.weight", {2}).value(), nullptr);
}

TEST_F(Loader, TakingTwiceIsOurBug) {
  WeightLoader loader(*checkpoint_);
  ASSERT_TRUE(loader.take("text.norm.weight", {2}).is_ok());
  EXPECT_EQ(loader.take("text.norm.weight", {2}).status().code(), StatusCode::kInternal);
}

TEST_F(Loader, FinishNamesWhatIsLeft) {
  WeightLoader loader(*checkpoint_);
  ASSERT_TRUE(loader.take("text.norm.weight", {2}).is_ok());
  loader.ignore("*.position_ids", "computed");
  const Status status = loader.finish();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("4 tensors no part of the model takes"));
  EXPECT_THAT(status.message(), HasSubstr("\"model.rotary_emb.inv_freq\" F32 [1]"));
  EXPECT_THAT(status.message(), HasSubstr("F8_E4M3"));
  EXPECT_THAT(status.message(), Not(HasSubstr("position_ids")));
}

TEST_F(Loader, FinishReportsWhatIsIgnored) {
  WeightLoader loader(*checkpoint_);
  ASSERT_TRUE(loader.take("text.norm.weight", {2}).is_ok());
  loader.ignore("text.norm.*", "never: it is bound");
  loader.ignore("*rotary_emb.inv_freq", "computed from the config");
  loader.ignore("text.*", "not used");
  loader.ignore("vision.*.position_ids", "counts up");
  loader.ignore("*nothing*like*this*", "matches nothing");
  ASSERT_TRUE(loader.finish().is_ok()) << loader.finish().message();
  ASSERT_EQ(loader.report().size(), 5u);
  for (const WeightLoader::Ignored& i : loader.report()) {
    EXPECT_NE(i.reason, "never: it is bound");
    if (i.tensor->name == "vision.embeddings.position_ids") {
      EXPECT_EQ(i.reason, "counts up");
    }
  }
}

}  // namespace
}  // namespace triptych
