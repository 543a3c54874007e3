#include "weights/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "weights/checkpoint_fixture.h"

namespace triptych {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

FixtureTensor f32_tensor(const std::string& name, const std::vector<float>& values) {
  return {name, "F32", {static_cast<int64_t>(values.size())}, f32_bytes(values)};
}

Status open_error(const std::string& path) { return Checkpoint::open(path).status(); }

std::vector<float> read_all(const Checkpoint& c, std::string_view name) {
  const TensorInfo* info = c.find(name);
  if (info == nullptr) return {};
  std::vector<std::byte> buffer;
  const auto data = c.read_rows(*info, 0, row_count(info->shape), buffer);
  if (!data.is_ok()) return {};
  std::vector<float> out(static_cast<size_t>(info->shape.n_elements()));
  std::memcpy(out.data(), *data, out.size() * sizeof(float));
  return out;
}

TEST(Checkpoint, OpensTheDemoModel) {
  const auto opened = Checkpoint::open("models/demo");
  ASSERT_TRUE(opened.is_ok()) << opened.status().message();
  const Checkpoint& c = **opened;
  EXPECT_FALSE(c.is_gguf());
  EXPECT_EQ(c.config().find("model_type")->string_value(), "llava");
  EXPECT_EQ(c.config_source(), "models/demo/config.json");
  ASSERT_NE(c.generation_config(), nullptr);
  EXPECT_EQ(c.generation_config()->find("max_new_tokens")->int_value(), 192);
  for (const TensorInfo& t : c.tensors()) {
    EXPECT_TRUE(t.name.starts_with("text.") || t.name.starts_with("vision.") ||
                t.name.starts_with("proj.") || t.name == "lm_head.weight")
        << t.name;
  }
  const TensorInfo* embedding = c.find("text.embed_tokens.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->shape, (Shape{704, 256}));
  EXPECT_EQ(c.find("text.embed_tokens"), nullptr);
  EXPECT_GT(c.total_bytes(), 20'000'000u);
}

TEST(Checkpoint, ReadsRowsFromTheMap) {
  TempFolder folder;
  folder.write("config.json", "{}");
  folder.write("model.safetensors",
               safetensors_bytes(
                   {{"model.embed_tokens.weight", "F32", {3, 2}, f32_bytes({1, 2, 3, 4, 5, 6})},
                    {"logit_scale", "F32", {}, f32_bytes({7})}}));
  const auto c = std::move(Checkpoint::open(folder.path())).value();
  EXPECT_EQ(c->generation_config(), nullptr);
  const TensorInfo& info = *c->find("text.embed_tokens.weight");
  std::vector<std::byte> buffer;
  const auto* rows = static_cast<const float*>(c->read_rows(info, 1, 2, buffer).value());
  EXPECT_THAT(std::vector<float>(rows, rows + 4), ElementsAre(3, 4, 5, 6));
  EXPECT_TRUE(buffer.empty());
  c->release(info);
  c->release(info, 1, 1);
  c->release(info, -5, 99);
  EXPECT_THAT(read_all(*c, "text.embed_tokens.weight"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(read_all(*c, "logit_scale"), ElementsAre(7));
  EXPECT_TRUE(c->read_rows(info, 3, 0, buffer).is_ok());
  EXPECT_EQ(c->read_rows(info, 2, 2, buffer).status().code(), StatusCode::kInternal);
  EXPECT_EQ(c->read_rows(info, -1, 1, buffer).status().code(), StatusCode::kInternal);
}

TEST(Checkpoint, CopiesRowsThatLieUnaligned) {
  TempFolder folder;
  folder.write("config.json", "{}");
  folder.write("model.safetensors",
               safetensors_raw(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                               R"("b":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}})",
                               "x" + f32_bytes({1, 2})));
  const auto c = std::move(Checkpoint::open(folder.path())).value();
  EXPECT_THAT(read_all(*c, "b"), ElementsAre(1, 2));
}

class Sharded : public testing::Test {
 protected:
  Sharded() {
    folder_.write("config.json", "{}");
    shard("model-1.safetensors", {f32_tensor("model.norm.weight", {1})});
    shard("model-2.safetensors", {f32_tensor("lm_head.weight", {2})});
  }
  void shard(const std::string& name, const std::vector<FixtureTensor>& tensors) {
    folder_.write(name, safetensors_bytes(tensors));
  }
  void index(const std::string& weight_map) {
    folder_.write("model.safetensors.index.json",
                  R"({"metadata": {"total_size": 8}, "weight_map": )" + weight_map + "}");
  }
  TempFolder folder_;
};

TEST_F(Sharded, ReadsTheShardsOfTheIndex) {
  index(R"({"lm_head.weight": "model-2.safetensors", "model.norm.weight": "model-1.safetensors"})");
  const auto opened = Checkpoint::open(folder_.path());
  ASSERT_TRUE(opened.is_ok()) << opened.status().message();
  EXPECT_THAT(read_all(**opened, "lm_head.weight"), ElementsAre(2));
  EXPECT_THAT(read_all(**opened, "text.norm.weight"), ElementsAre(1));
  EXPECT_TRUE((*opened)->notes().empty());
}

TEST_F(Sharded, TrustsTheIndexAboutStaleFilesAndTensors) {
  shard("model-1.safetensors",
        {f32_tensor("model.norm.weight", {1}), f32_tensor("lm_head.weight", {99})});
  shard("model-00009-of-00009.safetensors", {f32_tensor("model.norm.weight", {99})});
  shard("consolidated.safetensors", {f32_tensor("norm.weight", {99})});
  index(R"({"lm_head.weight": "model-2.safetensors", "model.norm.weight": "model-1.safetensors"})");
  const auto opened = Checkpoint::open(folder_.path());
  ASSERT_TRUE(opened.is_ok()) << opened.status().message();
  EXPECT_THAT(read_all(**opened, "lm_head.weight"), ElementsAre(2));
  EXPECT_THAT(read_all(**opened, "text.norm.weight"), ElementsAre(1));
  EXPECT_THAT((*opened)->notes(), ElementsAre(HasSubstr("lm_head.weight"),
                                              HasSubstr("model-00009-of-00009.safetensors"),
                                              HasSubstr("consolidated.safetensors")));
}

TEST_F(Sharded, RefusesPathsOutOfTheFolder) {
  for (const char* file : {"../model-1.safetensors", "/etc/passwd.safetensors",
                           "sub/model-1.safetensors", "..\\\\x.safetensors", "model-1.bin", ""}) {
    index(std::string(R"({"model.norm.weight": ")") + file + "\"}");
    const Status status = open_error(folder_.path());
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << file;
    EXPECT_THAT(status.message(),
                HasSubstr("model.safetensors.index.json: weight_map: \"model.norm.weight\""));
  }
  index(R"({"model.norm.weight": 3})");
  EXPECT_EQ(open_error(folder_.path()).code(), StatusCode::kInvalidArgument);
}

TEST_F(Sharded, NamesMissingShardsAndTensors) {
  index(R"({"model.norm.weight": "model-3.safetensors"})");
  EXPECT_EQ(open_error(folder_.path()).code(), StatusCode::kNotFound);
  EXPECT_THAT(open_error(folder_.path()).message(), HasSubstr("model-3.safetensors"));
  index(R"({"model.norm.weight": "model-1.safetensors", "x.y": "model-1.safetensors"})");
  EXPECT_EQ(open_error(folder_.path()).code(), StatusCode::kDataLoss);
  EXPECT_THAT(open_error(folder_.path()).message(),
              HasSubstr("model-1.safetensors: tensor \"x.y\" is not in it"));
}

TEST_F(Sharded, RefusesBrokenIndexes) {
  folder_.write("model.safetensors.index.json", "{\"weight_map\": ");
  EXPECT_THAT(open_error(folder_.path()).message(), HasSubstr("model.safetensors.index.json"));
  folder_.write("model.safetensors.index.json", "{}");
  EXPECT_THAT(open_error(folder_.path()).message(), HasSubstr("weight_map: expected an object"));
  index("{}");
  EXPECT_THAT(open_error(folder_.path()).message(), HasSubstr("lists no tensor"));
}

TEST(Checkpoint, TwoSpellingsOfOneTensorAreAnError) {
  TempFolder folder;
  folder.write("config.json", "{}");
  folder.write("model.safetensors",
               safetensors_bytes({f32_tensor("lm_head.weight", {1}),
                                  f32_tensor("language_model.lm_head.weight", {1})}));
  const Status status = open_error(folder.path());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("\"lm_head.weight\""));
  EXPECT_THAT(status.message(), HasSubstr("\"language_model.lm_head.weight\""));
}

TEST(Checkpoint, SaysWhatIsWrongWithAFolder) {
  EXPECT_EQ(open_error("/nowhere/model").code(), StatusCode::kNotFound);
  TempFolder folder;
  EXPECT_EQ(open_error(folder.path()).code(), StatusCode::kNotFound);
  EXPECT_THAT(open_error(folder.path()).message(), HasSubstr("config.json"));
  folder.write("config.json", "{\"a\": [1, 2}");
  EXPECT_EQ(open_error(folder.path()).code(), StatusCode::kDataLoss);
  EXPECT_THAT(open_error(folder.path()).message(), HasSubstr("config.json: not valid JSON"));
  folder.write("config.json", "[]");
  EXPECT_EQ(open_error(folder.path()).code(), StatusCode::kInvalidArgument);
  folder.write("config.json", "{}");
  EXPECT_EQ(open_error(folder.path()).code(), StatusCode::kNotFound);
  folder.write("consolidated.safetensors", "x");
  EXPECT_EQ(open_error(folder.path()).code(), StatusCode::kUnsupported);
  folder.write("pytorch_model-00001-of-00002.bin", "x");
  EXPECT_EQ(open_error(folder.path()).code(), StatusCode::kUnsupported);
  EXPECT_THAT(open_error(folder.path()).message(), HasSubstr("convert them to safetensors"));
  folder.write("adapter_model.safetensors", "x");
  EXPECT_THAT(open_error(folder.path()).message(), HasSubstr("merge it"));
  folder.write("model.safetensors", "");
  EXPECT_EQ(open_error(folder.path()).code(), StatusCode::kDataLoss);
  EXPECT_THAT(open_error(folder.path() + "/model.safetensors").message(),
              HasSubstr("give the folder"));
  folder.write("generation_config.json", "{");
  EXPECT_THAT(open_error(folder.path()).message(), HasSubstr("generation_config.json"));
}

}  // namespace
}  // namespace triptych
