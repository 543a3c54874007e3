// Field cases of checkpoint files: malformed safetensors (F62) and GGUF (F64) headers, heads and
// config keys that are missing (F66). Each case is a real file opened as a user would.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>

#include "weights/checkpoint.h"
#include "weights/checkpoint_fixture.h"
#include "weights/config_defaults.h"
#include "weights/config_reader.h"
#include "weights/loader.h"
#include "weights/safetensors.h"

namespace triptych {
namespace {

using testing::HasSubstr;

/// Most memory that the process has held so far, in MiB.
int64_t peak_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}
/// What refusing a bad header may take at most: the mapped header and the sanitizers' own needs,
/// nowhere near what the headers claim.
#if defined(__SANITIZE_THREAD__)
constexpr int64_t kFlatMib = 320;  // ThreadSanitizer keeps four bytes for each byte that is touched
#else
constexpr int64_t kFlatMib = 160;
#endif

std::string header_length(uint64_t n) {
  std::string out(8, '\0');
  std::memcpy(out.data(), &n, 8);
  return out;
}

class SafetensorsFile62 : public testing::Test {
 protected:
  SafetensorsFile62() { folder_.write("config.json", R"({"model_type": "llama"})"); }
  Status open(const std::string& file) {
    path_ = folder_.write("model.safetensors", file);
    const int64_t before = peak_mib();
    const Status status = Checkpoint::open(folder_.path()).status();
    EXPECT_LT(peak_mib() - before, kFlatMib);
    EXPECT_FALSE(status.is_ok());
    EXPECT_NE(exit_code(status.code()), 0);
    EXPECT_THAT(status.message(), HasSubstr(path_));
    return status;
  }
  TempFolder folder_;
  std::string path_;
};

TEST_F(SafetensorsFile62, LengthsThatNoFileHolds) {
  EXPECT_EQ(open(header_length(uint64_t{1} << 63) + "{}").code(), StatusCode::kOutOfRange);
  EXPECT_EQ(open(header_length(100'000'000'000) + "{}").code(), StatusCode::kOutOfRange);
  EXPECT_EQ(open(header_length(1000) + "{}").code(), StatusCode::kDataLoss);
  EXPECT_EQ(open(header_length(UINT64_MAX)).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(open("").code(), StatusCode::kDataLoss);
  EXPECT_EQ(open("{\"a\"").code(), StatusCode::kDataLoss);
}

TEST_F(SafetensorsFile62, AHeaderOf101MegabytesIsOverTheLimit) {
  EXPECT_FALSE(open(header_length(101'000'000) + "{}").is_ok());
  // Now as long as it says, though without blocks on the disk.
  ASSERT_EQ(::truncate(path_.c_str(), 102'000'000), 0);
  const int64_t before = peak_mib();
  const Status status = Checkpoint::open(folder_.path()).status();
  EXPECT_EQ(status.code(), StatusCode::kOutOfRange);
  EXPECT_THAT(status.message(), HasSubstr("the limit is 100000000"));
  EXPECT_LT(peak_mib() - before, kFlatMib);
}

TEST_F(SafetensorsFile62, AHeaderWithinTheLimitCannotAskForFiftyTimesItsSize) {
  std::string header = R"({"a":{"shape":[)";
  while (header.size() < 40'000'000) header += "0,";
  header += "0]}}";
  EXPECT_EQ(open(safetensors_raw(header, "")).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(open(safetensors_raw(std::string(1'000'000, '['), "")).code(), StatusCode::kDataLoss);
}

TEST_F(SafetensorsFile62, TensorsThatDoNotFitNameTheTensor) {
  const auto one = [&](std::string_view shape, std::string_view offsets, size_t data_bytes) {
    const Status status = open(safetensors_raw(
        fmt::format(R"({{"first.one":{{"dtype":"F32","shape":[{}],"data_offsets":[{}]}}}})", shape,
                    offsets),
        std::string(data_bytes, 'x')));
    EXPECT_THAT(status.message(), HasSubstr("\"first.one\""));
  };
  one("1", "4", 8);
  one("1", "8,4", 8);
  one("1", "4,8", 4);
  one("1", "0,99999999999999", 4);
  one("2", "0,4", 4);
  one("4611686018427387904,4", "0,4", 4);
  one("1", "4,8", 8);  // a hole in front
}

TEST_F(SafetensorsFile62, OverlapsAndDuplicatesNameTheTensor) {
  const auto two = [&](const char* second, const char* offsets, size_t data_bytes) {
    const Status status = open(safetensors_raw(
        fmt::format(R"({{"first":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}},)"
                    R"("{}":{{"dtype":"F32","shape":[1],"data_offsets":[{}]}}}})",
                    second, offsets),
        std::string(data_bytes, 'x')));
    EXPECT_THAT(status.message(), HasSubstr(fmt::format("\"{}\"", second)));
  };
  two("second", "0,4", 4);
  two("second", "2,6", 6);
  two("second", "8,12", 12);
  two("first", "4,8", 8);
}

TEST_F(SafetensorsFile62, AnUnknownTypeStopsTheModelThatNeedsIt) {
  folder_.write("model.safetensors",
                safetensors_bytes({{"model.norm.weight", "F7_NEW", {4}, "abcd"}}));
  const auto checkpoint = Checkpoint::open(folder_.path());
  ASSERT_TRUE(checkpoint.is_ok()) << checkpoint.status().message();
  WeightLoader loader(**checkpoint);
  const Status status = loader.take("text.norm.weight", {4}).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("model.safetensors: tensor \"model.norm.weight\""));
  EXPECT_THAT(status.message(), HasSubstr("F7_NEW"));
  EXPECT_FALSE(loader.finish().is_ok());
}

class GgufFile64 : public testing::Test {
 protected:
  Status open(const std::string& bytes) {
    const std::string path = folder_.write("m.gguf", bytes);
    const int64_t before = peak_mib();
    const Status status = Checkpoint::open(path).status();
    EXPECT_LT(peak_mib() - before, kFlatMib);
    EXPECT_FALSE(status.is_ok());
    EXPECT_NE(exit_code(status.code()), 0);
    EXPECT_THAT(status.message(), HasSubstr(path));
    return status;
  }
  TempFolder folder_;
};

TEST_F(GgufFile64, CountsBeyondTheFile) {
  EXPECT_THAT(open(GgufWriter().claim(0, uint64_t{1} << 62).bytes()).message(),
              HasSubstr("metadata count"));
  EXPECT_THAT(open(GgufWriter().claim(uint64_t{1} << 62, 0).bytes()).message(),
              HasSubstr("tensor count"));
  EXPECT_THAT(open(GgufWriter().claim(50'000, 0).bytes()).message(), HasSubstr("tensor count"));
  EXPECT_THAT(open(GgufWriter().claim(0, 60'000).bytes()).message(), HasSubstr("metadata key 0"));
}

TEST_F(GgufFile64, StringsAndArraysBeyondTheFile) {
  const std::string huge = header_length(uint64_t{1} << 60);
  EXPECT_THAT(open(GgufWriter().key_raw("general.name", 8, huge).bytes()).message(),
              HasSubstr("metadata \"general.name\""));
  const std::string of_strings = std::string("\x08\0\0\0", 4);
  const std::string of_f64 = std::string("\x0c\0\0\0", 4);
  const std::string of_arrays = std::string("\x09\0\0\0", 4);
  for (const std::string& value : {of_strings + huge, of_f64 + huge, of_f64 + header_length(9999),
                                   of_strings + header_length(9999), of_arrays + header_length(1),
                                   std::string("\x63\0\0\0", 4) + header_length(1)}) {
    EXPECT_THAT(open(GgufWriter().key_raw("some.list", 9, value).bytes()).message(),
                HasSubstr("metadata \"some.list\""));
  }
  EXPECT_THAT(open(GgufWriter().key_raw("k", 77, "").bytes()).message(), HasSubstr("type 77"));
  std::string key_too_long = GgufWriter().key_u32("k", 1).bytes();
  std::memcpy(key_too_long.data() + 24, huge.data(), 8);
  EXPECT_THAT(open(key_too_long).message(), HasSubstr("metadata key 0"));
}

TEST_F(GgufFile64, EmptyAndRepeatedNames) {
  EXPECT_THAT(open(GgufWriter().key_u32("", 1).bytes()).message(),
              HasSubstr("metadata key 0: is empty"));
  EXPECT_THAT(open(GgufWriter().key_u32("a", 1).key_u32("a", 2).bytes()).message(),
              HasSubstr("metadata \"a\": given twice"));
  EXPECT_THAT(open(GgufWriter().tensor_entry("", 0, {1}, 0).bytes()).message(),
              HasSubstr("name of tensor 0: is empty"));
  EXPECT_THAT(open(GgufWriter().tensor_entry("t", 0, {1}, 0).tensor_entry("t", 0, {1}, 32).bytes())
                  .message(),
              HasSubstr("tensor \"t\": given twice"));
}

TEST_F(GgufFile64, TensorsThatDoNotFitNameTheTensor) {
  const auto entry = [&](uint32_t type, const std::vector<uint64_t>& sizes, uint64_t offset) {
    GgufWriter w;
    w.tensor_entry("blk.0.bad", type, sizes, offset);
    const Status status = open(w.bytes() + std::string(64, 'x'));
    EXPECT_THAT(status.message(), HasSubstr("\"blk.0.bad\""));
  };
  const uint64_t half = uint64_t{1} << 32;
  entry(0, std::vector<uint64_t>(9, 1), 0);  // nine axes
  entry(0, {}, 0);                           // none
  entry(0, {4, 0}, 0);                       // a zero axis
  entry(0, {half, half, 4}, 0);              // product over 2^64
  entry(0, {half, half - 1}, 0);             // bytes over 2^64
  entry(2, {33}, 0);                         // rows that are no whole blocks
  entry(0, {4}, 1024);                       // past the end
  entry(0, {17}, 0);                         // ends past the end
  entry(0, {1}, uint64_t{0} - 32);           // offset + size wraps
  entry(0, {1}, 5);                          // unaligned
  GgufWriter overlap;
  overlap.tensor_entry("a", 0, {16}, 0).tensor_entry("blk.0.bad", 0, {1}, 32);
  EXPECT_THAT(open(overlap.bytes() + std::string(64, 'x')).message(),
              HasSubstr("\"blk.0.bad\": overlaps"));
}

TEST_F(GgufFile64, CutFiles) {
  const std::string whole = tiny_llama_gguf(GgmlType::kQ4_1).bytes();
  for (size_t size = 0; size < whole.size(); size += 211) {
    EXPECT_EQ(open(whole.substr(0, size)).code(), StatusCode::kDataLoss) << size;
  }
}

// F66, heads: a model binds its head by what is there (decided in models); the loader makes sure
// that nothing is invented and nothing is dropped.
class Heads66 : public testing::Test {
 protected:
  std::unique_ptr<Checkpoint> open(bool with_head) {
    std::vector<FixtureTensor> tensors = {
        {"model.embed_tokens.weight", "F32", {2, 1}, f32_bytes({1, 2})}};
    if (with_head) tensors.push_back({"lm_head.weight", "F32", {2, 1}, f32_bytes({3, 4})});
    folder_.write("config.json", R"({"model_type": "llama"})");
    folder_.write("model.safetensors", safetensors_bytes(tensors));
    return std::move(Checkpoint::open(folder_.path())).value();
  }
  TempFolder folder_;
};

TEST_F(Heads66, TiedWithoutAHeadLoads) {
  const auto checkpoint = open(false);
  WeightLoader loader(*checkpoint);
  EXPECT_TRUE(loader.take("text.embed_tokens.weight", {2, 1}).is_ok());
  EXPECT_EQ(loader.take_optional("lm_head.weight", {2, 1}).value(), nullptr);
  EXPECT_TRUE(loader.finish().is_ok());
}

TEST_F(Heads66, AnExtraHeadIsBoundOrReportedNeverDropped) {
  const auto checkpoint = open(true);
  WeightLoader taken(*checkpoint);
  EXPECT_TRUE(taken.take("text.embed_tokens.weight", {2, 1}).is_ok());
  EXPECT_NE(taken.take_optional("lm_head.weight", {2, 1}).value(), nullptr);
  EXPECT_TRUE(taken.finish().is_ok());
  WeightLoader left(*checkpoint);
  EXPECT_TRUE(left.take("text.embed_tokens.weight", {2, 1}).is_ok());
  EXPECT_THAT(left.finish().message(), HasSubstr("\"lm_head.weight\""));
}

TEST_F(Heads66, UntiedWithoutAHeadIsRefused) {
  const auto checkpoint = open(false);
  WeightLoader loader(*checkpoint);
  const Status status = loader.take("lm_head.weight", {2, 1}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("\"lm_head.weight\" of shape [2, 1] is missing"));
}

// F66, config: each key dropped gives the value of transformers' class or an error with file and
// key. The demo model's config is read with one key left out at a time.
Json without(const Json& object, std::string_view part, std::string_view key) {
  Json out = Json::object();
  for (const auto& [name, value] : object.members()) {
    if (part.empty() && name == key) continue;
    out.push_member(name, name == part ? without(value, "", key) : value);
  }
  return out;
}

/// The default that `section` gave for `key`, or its error, is what the class says.
void expect_default(const ConfigSection& section, std::string_view path, std::string_view key) {
  const Json* defaults = config_defaults(section.model_type());
  ASSERT_NE(defaults, nullptr) << section.model_type();
  const Json* expected = defaults->find(key);
  const JsonRef found = section.lookup(key);
  if (expected != nullptr) {
    EXPECT_EQ(found.json().dump(), expected->dump()) << key;
    return;
  }
  EXPECT_TRUE(found.is_null()) << key << " " << found.json().dump();
  EXPECT_THAT(section.get_int(key, 0, 1).status().message(),
              HasSubstr(fmt::format("config.json: {}{}: is missing", path, key)));
}

TEST(ConfigKeys66, EachDroppedKeyOfAPartGivesTheClassDefaultOrAnError) {
  const auto checkpoint = Checkpoint::open("models/demo");
  ASSERT_TRUE(checkpoint.is_ok()) << checkpoint.status().message();
  const Json& whole = (*checkpoint)->config();
  for (const std::string part : {"text_config", "vision_config"}) {
    for (const auto& [key, value] : whole.find(part)->members()) {
      // Told apart by the tests of ConfigReader; the root has these two as well.
      if (key == "model_type" || whole.find(key) != nullptr) continue;
      const Json config = without(whole, part, key);
      const auto reader = ConfigReader::create(config, "config.json");
      ASSERT_TRUE(reader.is_ok());
      const auto section = part == "text_config" ? reader->text() : reader->vision();
      ASSERT_TRUE(section.is_ok());
      expect_default(*section, part + ".", key);
    }
  }
}

TEST(ConfigKeys66, EachDroppedKeyOfTheRootGivesTheClassDefaultOrAnError) {
  const auto checkpoint = Checkpoint::open("models/demo");
  ASSERT_TRUE(checkpoint.is_ok()) << checkpoint.status().message();
  const Json& whole = (*checkpoint)->config();
  for (const auto& [key, value] : whole.members()) {
    const Json config = without(whole, "", key);
    const auto reader = ConfigReader::create(config, "config.json");
    if (key == "model_type") {
      EXPECT_EQ(reader.status().message(), "config.json: model_type: is missing");
      continue;
    }
    ASSERT_TRUE(reader.is_ok()) << key;
    if (key.ends_with("_config")) {
      EXPECT_TRUE(reader->text().is_ok() && reader->vision().is_ok());
    } else {
      expect_default(reader->root(), "", key);
    }
  }
}

}  // namespace
}  // namespace triptych
