#include "weights/safetensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weights/checkpoint_fixture.h"

namespace triptych {
namespace {

using testing::HasSubstr;

Result<std::vector<SafetensorsEntry>> parse(const std::string& file) {
  return parse_safetensors(std::as_bytes(std::span(file.data(), file.size())), "x.safetensors");
}
Status parse_header(std::string_view header, size_t data_bytes) {
  return parse(safetensors_raw(header, std::string(data_bytes, 'd'))).status();
}

TEST(Safetensors, ReadsEntriesInOrder) {
  const std::string file = safetensors_bytes({{"b", "F32", {2, 3}, f32_bytes({1, 2, 3, 4, 5, 6})},
                                              {"a", "BF16", {}, bf16_bytes({1})},
                                              {"ids", "I64", {1}, std::string(8, '\0')}});
  const auto entries = parse(file);
  ASSERT_TRUE(entries.is_ok()) << entries.status().message();
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[0].name, "b");
  EXPECT_EQ((*entries)[0].shape, (Shape{2, 3}));
  EXPECT_EQ((*entries)[0].dtype, DType::kF32);
  EXPECT_EQ((*entries)[0].n_bytes, 24u);
  EXPECT_EQ((*entries)[1].shape.rank(), 0);
  EXPECT_EQ((*entries)[1].offset, (*entries)[0].offset + 24);
  EXPECT_EQ((*entries)[2].type, "I64");
  EXPECT_FALSE((*entries)[2].dtype.has_value());
}

TEST(Safetensors, TakesUnknownAndPackedTypesUntilTheyAreBound) {
  const auto entries = parse(safetensors_raw(
      R"({"x":{"dtype":"F3_FUTURE","shape":[7],"data_offsets":[0,3]},
          "y":{"dtype":"F4","shape":[2,2],"data_offsets":[3,5]},
          "z":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[5,6]}})",
      "123456"));
  ASSERT_TRUE(entries.is_ok()) << entries.status().message();
  for (const SafetensorsEntry& e : *entries) EXPECT_FALSE(e.dtype.has_value());
}

TEST(Safetensors, TakesEmptyTensors) {
  const auto entries = parse(safetensors_raw(
      R"({"a":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]},
          "b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      "1234"));
  ASSERT_TRUE(entries.is_ok()) << entries.status().message();
}

struct BadHeader {
  const char* header;
  size_t data_bytes;
  const char* message;
};

class BadSafetensors : public testing::TestWithParam<BadHeader> {};

TEST_P(BadSafetensors, IsRefusedByName) {
  const Status status = parse_header(GetParam().header, GetParam().data_bytes);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status.message();
  EXPECT_THAT(status.message(), HasSubstr("x.safetensors: "));
  EXPECT_THAT(status.message(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Headers, BadSafetensors,
    testing::Values(
        BadHeader{R"([])", 0, "no JSON object"}, BadHeader{R"({"a":)", 0, "header: not valid JSON"},
        BadHeader{R"({"a":1})", 0, "tensor \"a\": dtype is missing"},
        BadHeader{R"({"a":{"dtype":"F32","shape":4,"data_offsets":[0,4]}})", 4, "\"a\": shape"},
        BadHeader{R"({"a":{"dtype":"F32","shape":[1]}})", 4, "\"a\": data_offsets"},
        BadHeader{R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "sizes from 0"},
        BadHeader{R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4, "sizes from 0"},
        BadHeader{R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1],"data_offsets":[0,4]}})", 4,
                  "7 axes"},
        BadHeader{R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})",
                  4, "larger than any memory"},
        BadHeader{R"({"a":{"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})",
                  0, "larger than any memory"},
        BadHeader{R"({"a":{"dtype":"F9","shape":[9223372036854775807],"data_offsets":[0,4]}})", 4,
                  "larger than any memory"},
        BadHeader{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4]}})", 4, "pair of integers"},
        BadHeader{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}})", 8,
                  "[8, 4] do not lie within the 8 bytes"},
        BadHeader{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", 8, "do not lie"},
        BadHeader{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})", 8, "do not lie"},
        BadHeader{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]}})", 4,
                  "pair of integers"},
        BadHeader{R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8,
                  "expected 12 bytes for F32 of shape [3], found 8"},
        BadHeader{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                  R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
                  6, "\"b\": overlaps tensor \"a\""},
        BadHeader{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                  R"("b":{"dtype":"F32","shape":[1],"data_offsets":[6,10]}})",
                  10, "\"b\": a hole of 2 bytes"},
        BadHeader{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 9,
                  "tensors end at byte"},
        BadHeader{R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                  R"("\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                  2, "duplicate key \"a\""},
        BadHeader{R"({"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1, "empty name"}));

TEST(Safetensors, RefusesLengthsBeyondFileAndLimit) {
  std::string huge(16, '\0');
  huge[7] = static_cast<char>(0x80);  // 2^63
  EXPECT_EQ(parse(huge).status().code(), StatusCode::kOutOfRange);
  EXPECT_THAT(parse(huge).status().message(), HasSubstr("header claims 9223372036854775808 bytes"));

  std::string cut = safetensors_bytes({{"a", "F32", {1}, f32_bytes({1})}});
  cut.resize(20);
  EXPECT_EQ(parse(cut).status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(parse(cut).status().message(), HasSubstr("cut short?"));
  EXPECT_EQ(parse("1234567").status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(parse("").status().code(), StatusCode::kDataLoss);
}

TEST(Safetensors, NamesLfsPointers) {
  EXPECT_THAT(
      parse("version https://git-lfs.github.com/spec/v1\noid sha256:0\n").status().message(),
      HasSubstr("git lfs pull"));
}

TEST(Safetensors, BoundsTheNumberOfValues) {
  std::string header = "{\"a\":[";
  for (uint64_t i = 0; i <= kMaxSafetensorsHeaderValues; ++i) header += "0,";
  header += "0]}";
  EXPECT_EQ(parse_header(header, 0).code(), StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace triptych
