#include "weights/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weights/checkpoint_fixture.h"

namespace triptych {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<GgufFile> parse(const std::string& bytes) {
  return GgufFile::parse(std::as_bytes(std::span(bytes.data(), bytes.size())), "x.gguf");
}

TEST(Gguf, ReadsMetadataOfAllKinds) {
  GgufWriter w;
  w.key_raw("u8", 0, "\xff").key_raw("i8", 1, "\xff").key_raw("u16", 2, "\xff\xff");
  w.key_raw("i16", 3, "\xff\xff").key_u32("u32", 0xffffffffU).key_raw("i32", 5, "\xff\xff\xff\xff");
  w.key_f32("f32", 1.5F).key_bool("bool", true).key_string("string", "hi");
  w.key_strings("strings", {"a", "", "ccc"}).key_floats("floats", {1, 2}).key_ints("ints", {-1, 7});
  w.key_raw("u64", 10, std::string(8, '\xff')).key_raw("i64", 11, std::string(8, '\xff'));
  w.key_raw("f64", 12, std::string("\0\0\0\0\0\0\xf8\x3f", 8));
  for (const uint32_t version : {2U, 3U}) {
    const std::string bytes = w.bytes(version);
    const auto parsed = parse(bytes);
    ASSERT_TRUE(parsed.is_ok()) << parsed.status().message();
    const GgufFile& f = *parsed;
    const auto number = [&](std::string_view key) {
      return f.find_int(key, INT64_MIN, INT64_MAX).value();
    };
    EXPECT_EQ(number("u8"), 255);
    EXPECT_EQ(number("i8"), -1);
    EXPECT_EQ(number("u16"), 65535);
    EXPECT_EQ(number("i16"), -1);
    EXPECT_EQ(number("u32"), 4294967295);
    EXPECT_EQ(number("i32"), -1);
    EXPECT_EQ(number("u64"), INT64_MAX);  // no key of ours means more
    EXPECT_EQ(number("i64"), -1);
    EXPECT_EQ(number("absent"), std::nullopt);
    EXPECT_EQ(f.find_number("f32").value(), 1.5);
    EXPECT_EQ(f.find_number("f64").value(), 1.5);
    EXPECT_EQ(f.find_number("u8").value(), 255.0);
    EXPECT_EQ(f.find_bool("bool").value(), true);
    EXPECT_EQ(f.find_string("string").value(), "hi");
    EXPECT_THAT(f.find_strings("strings").value(), ElementsAre("a", "", "ccc"));
    EXPECT_THAT(f.find_floats("floats").value(), ElementsAre(1, 2));
    EXPECT_THAT(f.find_ints("ints").value(), ElementsAre(-1, 7));
    EXPECT_TRUE(f.find_ints("absent").value().empty());
  }
}

TEST(Gguf, NamesKeysOfTheWrongKind) {
  GgufWriter w;
  w.key_string("s", "hi").key_u32("n", 9).key_floats("f", {1});
  w.key_raw("nan", 6, std::string("\0\0\xc0\x7f", 4));
  const std::string bytes = w.bytes();
  const auto f = parse(bytes);
  ASSERT_TRUE(f.is_ok()) << f.status().message();
  EXPECT_THAT(f->find_int("s", 0, 9).status().message(),
              HasSubstr("x.gguf: s: expected an integer, found a string"));
  EXPECT_THAT(f->find_int("n", 0, 8).status().message(), HasSubstr("n: 9 is outside"));
  EXPECT_FALSE(f->find_string("n").is_ok());
  EXPECT_FALSE(f->find_bool("n").is_ok());
  EXPECT_FALSE(f->find_number("s").is_ok());
  EXPECT_THAT(f->find_number("nan").status().message(), HasSubstr("finite"));
  EXPECT_FALSE(f->find_strings("f").is_ok());
  EXPECT_FALSE(f->find_floats("n").is_ok());
  EXPECT_FALSE(f->find_ints("f").is_ok());
}

TEST(Gguf, ReadsTensorsOutermostAxisFirst) {
  GgufWriter w;
  w.tensor("a", GgmlType::kF32, {2, 3}, f32_bytes({1, 2, 3, 4, 5, 6}));
  w.tensor("b", GgmlType::kQ8_0, {32, 2}, std::string(68, '\1'));
  w.tensor("c", static_cast<GgmlType>(12), {256}, std::string(144, '\1'));
  const std::string bytes = w.bytes();
  const auto f = parse(bytes);
  ASSERT_TRUE(f.is_ok()) << f.status().message();
  ASSERT_EQ(f->tensors().size(), 3u);
  EXPECT_EQ(f->tensors()[0].shape, (Shape{3, 2}));
  EXPECT_EQ(f->tensors()[0].offset % 32, 0u);
  EXPECT_EQ(f->tensors()[1].n_bytes, 68u);
  EXPECT_EQ(f->tensors()[1].offset, f->tensors()[0].offset + 32);
  EXPECT_EQ(ggml_type_name(f->tensors()[2].type), "Q4_K");
  EXPECT_EQ(ggml_type_name(static_cast<GgmlType>(99)), "type 99");
  EXPECT_FALSE(ggml_type_is_read(static_cast<GgmlType>(12)));
  EXPECT_EQ(f->find_tensor("b"), &f->tensors()[1]);
  EXPECT_EQ(f->find_tensor("z"), nullptr);
}

TEST(Gguf, HonoursTheAlignmentOfTheFile) {
  GgufWriter w;
  w.key_u32("general.alignment", 64).tensor_entry("a", 0, {1}, 64);
  std::string bytes = w.bytes();
  bytes.resize((bytes.size() + 63) / 64 * 64 + 68, '\0');
  const auto f = parse(bytes);
  ASSERT_TRUE(f.is_ok()) << f.status().message();
  EXPECT_EQ(f->tensors()[0].offset % 64, 0u);
  EXPECT_EQ(parse(GgufWriter().key_u32("general.alignment", 48).bytes()).status().code(),
            StatusCode::kDataLoss);
  EXPECT_FALSE(parse(GgufWriter().key_u32("general.alignment", 0).bytes()).is_ok());
}

TEST(Gguf, RefusesOtherVersions) {
  EXPECT_THAT(parse(GgufWriter().bytes(1)).status().message(), HasSubstr("version 1;"));
  EXPECT_THAT(parse(GgufWriter().bytes(3u << 24)).status().message(),
              HasSubstr("version 3 in big-endian order"));
  EXPECT_EQ(parse(GgufWriter().bytes(4)).status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(parse(std::string("GGML\3\0\0\0", 8)).status().code(), StatusCode::kDataLoss);
}

TEST(Gguf, EveryCutOfAFileIsAnErrorOrTheSameHead) {
  const std::string whole = tiny_llama_gguf(GgmlType::kQ8_0).bytes();
  for (size_t size = 0; size < whole.size(); size += size < 6000 ? 1 : 97) {
    const auto parsed = parse(whole.substr(0, size));
    EXPECT_FALSE(parsed.is_ok()) << size;
    EXPECT_EQ(parsed.status().code(), StatusCode::kDataLoss) << parsed.status().message();
  }
}

}  // namespace
}  // namespace triptych
