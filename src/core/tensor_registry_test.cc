#include "core/tensor_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/json.h"

namespace triptych {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class TensorRegistryTest : public testing::Test {
 protected:
  void publish(std::string_view name, std::string_view producer, DType dtype, const Shape& shape) {
    registry_.publish(name, producer, Modality::kImage, View::dense(data_, dtype, shape));
  }
  float data_[64] = {};
  TensorRegistry registry_;
};

TEST_F(TensorRegistryTest, WhatAgreesPasses) {
  publish("vision_tower.out", "vision tower", DType::kF32, {4, 16});
  EXPECT_TRUE(registry_.expect("vision_tower.out", "projector", DType::kF32, {4, 16}).is_ok());
  EXPECT_TRUE(registry_.expect("vision_tower.out", "projector", DType::kF32, {-1, 16}).is_ok());
}

TEST_F(TensorRegistryTest, AMismatchNamesBothSides) {
  publish("vision_tower.out", "vision tower", DType::kF32, {4, 16});
  for (const Status& s :
       {registry_.expect("vision_tower.out", "projector", DType::kF32, {4, 8}),
        registry_.expect("vision_tower.out", "projector", DType::kBF16, {4, 16}),
        registry_.expect("vision_tower.out", "projector", DType::kF32, {1, 4, 16}),
        registry_.expect("vision_tower.out", "projector", DType::kF32, {-1})}) {
    EXPECT_EQ(s.code(), StatusCode::kInternal);
    EXPECT_THAT(s.message(), AllOf(HasSubstr("vision_tower.out"), HasSubstr("vision tower"),
                                   HasSubstr("projector"), HasSubstr("f32 [4, 16]")));
  }
}

TEST_F(TensorRegistryTest, NothingPublishedIsAnError) {
  const Status s = registry_.expect("audio_tower.out", "projector", DType::kF32, {-1});
  EXPECT_EQ(s.code(), StatusCode::kInternal);
  EXPECT_THAT(s.message(), AllOf(HasSubstr("audio_tower.out"), HasSubstr("projector")));
}

TEST_F(TensorRegistryTest, TheLastTensorCounts) {
  publish("x", "a", DType::kF32, {1});
  publish("x", "b", DType::kF32, {2});
  EXPECT_FALSE(registry_.expect("x", "c", DType::kF32, {1}).is_ok());
  EXPECT_TRUE(registry_.expect("x", "c", DType::kF32, {2}).is_ok());
}

TEST_F(TensorRegistryTest, TheSinkSeesRecordsInOrder) {
  std::vector<TensorRecord> seen;
  registry_.set_sink([&](const TensorRecord& record) { seen.push_back(record); });
  publish("x", "a", DType::kF32, {2, 3});
  registry_.publish("y", "b", Modality::kText, View::dense(data_, DType::kI32, {5}), "bucket 8");
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].name, "x");
  EXPECT_EQ(seen[0].producer, "a");
  EXPECT_EQ(seen[0].strides[0], 3);
  EXPECT_EQ(seen[1].note, "bucket 8");
  EXPECT_EQ(seen[1].modality, Modality::kText);
  EXPECT_LE(seen[0].time_ns, seen[1].time_ns);
  EXPECT_GT(seen[0].time_ns, 0);
}

TEST_F(TensorRegistryTest, TapsSeeContents) {
  EXPECT_FALSE(registry_.has_tap());
  registry_.tap("nobody.listens", View::dense(data_, DType::kF32, {1}));
  std::vector<std::string> names;
  float first = 0;
  registry_.set_tap([&](const std::string& name, const View& view) {
    names.push_back(name);
    first = view.f32()[0];
  });
  EXPECT_TRUE(registry_.has_tap());
  data_[0] = 3;
  registry_.tap("vision_tower.block.3", View::dense(data_, DType::kF32, {4}));
  publish("vision_tower.out", "vision tower", DType::kF32, {4});
  EXPECT_THAT(names, testing::ElementsAre("vision_tower.block.3", "vision_tower.out"));
  EXPECT_EQ(first, 3);
}

TEST_F(TensorRegistryTest, ManyThreadsMayPublishAndExpect) {
  publish("shared", "first", DType::kF32, {4});
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::string own = "own." + std::to_string(t);
      for (int i = 1; i < 200; ++i) {
        publish(own, "worker", DType::kF32, {i % 8});
        EXPECT_TRUE(registry_.expect(own, "worker", DType::kF32, {i % 8}).is_ok());
        EXPECT_TRUE(registry_.expect("shared", "worker", DType::kF32, {4}).is_ok());
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST(TensorRecord, BecomesOneLineOfJson) {
  TensorRecord record{"x\n", "a", Modality::kVideo, DType::kBF16, {2, 3}, {3, 1}, 17, "tiles 4"};
  const std::string line = to_json_line(record);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(line, R"({"name":"x\n","producer":"a","modality":"video","dtype":"bf16","shape":[2,3],)"
                  R"("strides":[3,1],"time_ns":17,"note":"tiles 4"})");
  record.note.clear();
  const auto parsed = parse_json(to_json_line(record));
  ASSERT_TRUE(parsed.is_ok());
  EXPECT_EQ(parsed->find("note"), nullptr);
}

TEST(Modality, Names) {
  EXPECT_EQ(modality_name(Modality::kText), "text");
  EXPECT_EQ(modality_name(Modality::kImage), "image");
  EXPECT_EQ(modality_name(Modality::kAudio), "audio");
  EXPECT_EQ(modality_name(Modality::kVideo), "video");
}

}  // namespace
}  // namespace triptych
