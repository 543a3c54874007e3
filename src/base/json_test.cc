#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"

namespace triptych {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Json parsed(std::string_view text) {
  Result<Json> r = parse_json(text);
  EXPECT_TRUE(r.is_ok()) << r.status().message();
  return r.is_ok() ? std::move(*r) : Json();
}

Status refused(std::string_view text, const JsonLimits& limits = {}) {
  Result<Json> r = parse_json(text, limits);
  EXPECT_FALSE(r.is_ok()) << text;
  return r.status();
}

TEST(ParseJson, EveryKind) {
  EXPECT_TRUE(parsed("null").is_null());
  EXPECT_TRUE(parsed("true").bool_value());
  EXPECT_FALSE(parsed("false").bool_value());
  EXPECT_EQ(parsed("-42").int_value(), -42);
  EXPECT_EQ(parsed("1e3").kind(), Json::Kind::kFloat);
  EXPECT_EQ(parsed("1e3").number_value(), 1000.0);
  EXPECT_EQ(parsed("\"a\\u00e9\\n\"").string_value(), "a\xc3\xa9\n");
  EXPECT_EQ(parsed(" [1, [2], {}] ").elements().size(), 3u);
  EXPECT_EQ(parsed("{\"a\": {\"b\": 1}}").find("a")->find("b")->int_value(), 1);
}

TEST(ParseJson, ObjectsKeepTheirOrder) {
  const Json j = parsed(R"({"z": 1, "a": 2, "m": 3})");
  std::vector<std::string> keys;
  for (const auto& [key, value] : j.members()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("z", "a", "m"));
}

TEST(ParseJson, IntegersAtTheEndsOfTheRange) {
  EXPECT_EQ(parsed("9223372036854775807").int_value(), INT64_MAX);
  EXPECT_EQ(parsed("-9223372036854775808").int_value(), INT64_MIN);
  EXPECT_EQ(parsed("9223372036854775808").kind(), Json::Kind::kFloat);
  EXPECT_EQ(parsed("18446744073709551615").number_value(), 18446744073709551615.0);
  EXPECT_EQ(parsed("123456789012345678901234567890").kind(), Json::Kind::kFloat);
}

TEST(ParseJson, BrokenTextNamesTheByte) {
  for (const char* text : {"", "{", "[1,]", "{\"a\" 1}", "tru", "[1] x", "\"\x01\"", "{'a': 1}",
                           "NaN", "[1", "\"\xff\"", "01", "// no comments\n1"}) {
    const Status s = refused(text);
    EXPECT_EQ(s.code(), StatusCode::kDataLoss) << text;
    EXPECT_THAT(s.message(), StartsWith("not valid JSON at byte ")) << text;
    EXPECT_LT(s.message().size(), 300u);
  }
}

TEST(ParseJson, NumbersBeyondDoubleAreRefused) { EXPECT_FALSE(refused("1e999").is_ok()); }

TEST(ParseJson, DuplicateKeysAreRefusedUnlessAllowed) {
  const char* text = R"({"a": 1, "b": {"a": 2}, "a": 3})";
  EXPECT_THAT(refused(text).message(), HasSubstr("duplicate key \"a\""));
  JsonLimits lenient;
  lenient.reject_duplicate_keys = false;
  EXPECT_TRUE(parse_json(text, lenient).is_ok());
  EXPECT_TRUE(parse_json(R"({"a": {"a": 1}, "b": {"a": 1}})").is_ok()) << "other objects";
}

TEST(ParseJson, DepthIsBounded) {
  JsonLimits limits;
  limits.max_depth = 3;
  EXPECT_TRUE(parse_json("[[[1]]]", limits).is_ok());
  EXPECT_THAT(refused("[[[[1]]]]", limits).message(), HasSubstr("nested deeper than 3 levels"));
  EXPECT_TRUE(parse_json(std::string(128, '[') + std::string(128, ']')).is_ok());
  EXPECT_FALSE(refused(std::string(1000000, '[')).is_ok());
  EXPECT_FALSE(refused(std::string(100, '[') + std::string(1000000, '{')).is_ok());
}

TEST(ParseJson, EscapesOfSurrogatePairsBecomeUtf8) {
  EXPECT_EQ(parsed(R"("\ud83d\ude00")").string_value(), "\xf0\x9f\x98\x80");
  EXPECT_FALSE(refused(R"("\ud83d")").is_ok());
}

TEST(Json, BuildersAndDump) {
  Json j = Json::object();
  j.set("name", Json::string("a \"quoted\" \xe2\x82\xac"));
  j.set("n", Json::integer(3));
  j.set("share", Json::number(0.5));
  j.set("ok", Json::boolean(true));
  j.set("none", Json());
  Json list;
  list.append(Json::integer(1));
  list.append(Json::array());
  j.set("list", std::move(list));
  j.set("n", Json::integer(4));
  EXPECT_EQ(j.dump(),
            "{\"name\":\"a \\\"quoted\\\" \xe2\x82\xac\",\"n\":4,\"share\":0.5,"
            "\"ok\":true,\"none\":null,\"list\":[1,[]]}");
  EXPECT_EQ(parsed(j.dump()).dump(), j.dump());
  EXPECT_EQ(parsed("{\"a\":1}").dump(2), "{\n  \"a\": 1\n}");
}

TEST(Json, DumpIsAlwaysValid) {
  EXPECT_EQ(Json::string("bad \xff byte").dump(), "\"bad \xef\xbf\xbd byte\"");
  EXPECT_EQ(Json::number(NAN).dump(), "null");
  EXPECT_EQ(Json::number(INFINITY).dump(), "null");
}

TEST(Json, ReadersOfAnotherKindGiveZeroValues) {
  const Json s = Json::string("x");
  EXPECT_FALSE(s.bool_value());
  EXPECT_EQ(s.int_value(), 0);
  EXPECT_EQ(s.find("key"), nullptr);
  EXPECT_TRUE(Json::integer(1).string_value().empty());
  EXPECT_FALSE(Json::integer(1).bool_value());
}

TEST(Json, UncheckedIntegerOfAFloatStaysInRange) {
  EXPECT_EQ(Json::number(2.9).int_value(), 2);
  EXPECT_EQ(Json::number(1e300).int_value(), INT64_MAX);
  EXPECT_EQ(Json::number(-1e300).int_value(), INT64_MIN);
  EXPECT_EQ(Json::number(NAN).int_value(), 0);
}

class JsonRefTest : public testing::Test {
 protected:
  JsonRefTest()
      : value_(parsed(R"({
          "layers": 12, "eps": 1e-6, "whole": 5.0, "half": 5.5, "huge": 1e30, "name": "x",
          "flag": true, "nothing": null, "sizes": [1, 2, 3], "mean": [0.5, 1],
          "text_config": {"heads": [1, "two"]}})")),
        ref_(value_, "config.json") {}
  Json value_;
  JsonRef ref_;
};

TEST_F(JsonRefTest, ReadsWhatIsThere) {
  EXPECT_EQ(*ref_.at("layers").as_int(), 12);
  EXPECT_EQ(*ref_.at("eps").as_number(), 1e-6);
  EXPECT_EQ(*ref_.at("layers").as_number(), 12.0);
  EXPECT_EQ(*ref_.at("name").as_string(), "x");
  EXPECT_TRUE(*ref_.at("flag").as_bool());
  EXPECT_THAT(*ref_.at("sizes").as_ints(), ElementsAre(1, 2, 3));
  EXPECT_THAT(*ref_.at("mean").as_numbers(), ElementsAre(0.5, 1.0));
  EXPECT_EQ(ref_.at("sizes").size(), 3u);
}

TEST_F(JsonRefTest, WholeFloatsAreIntegers) {
  EXPECT_EQ(*ref_.at("whole").as_int(), 5);
  EXPECT_FALSE(ref_.at("half").as_int().is_ok());
  EXPECT_FALSE(ref_.at("huge").as_int().is_ok());
}

TEST_F(JsonRefTest, ErrorsNameFileAndPath) {
  EXPECT_EQ(ref_.at("name").as_int().status().message(),
            "config.json: name: expected an integer, found a string");
  EXPECT_EQ(ref_.at("text_config").at("heads").at(1).as_int().status().message(),
            "config.json: text_config.heads[1]: expected an integer, found a string");
  EXPECT_EQ(ref_.at("text_config").at("heads").as_ints().status().message(),
            "config.json: text_config.heads[1]: expected an integer, found a string");
  EXPECT_EQ(ref_.at("absent").at("below").as_string().status().message(),
            "config.json: absent.below: expected a string, found null");
  EXPECT_EQ(ref_.at("sizes").at(9).as_bool().status().message(),
            "config.json: sizes[9]: expected true or false, found null");
  EXPECT_EQ(ref_.at("layers").as_int_in(1, 8).status().message(),
            "config.json: layers: 12 is outside the allowed range 1..8");
  EXPECT_EQ(ref_.error("no").code(), StatusCode::kInvalidArgument);
}

TEST_F(JsonRefTest, AbsentAndNullFallBackButAWrongTypeIsAnError) {
  EXPECT_EQ(*ref_.get_int("absent", 3), 3);
  EXPECT_EQ(*ref_.get_int("nothing", 3), 3);
  EXPECT_EQ(*ref_.get_int("layers", 3), 12);
  EXPECT_FALSE(ref_.get_int("name", 3).is_ok());
  EXPECT_EQ(*ref_.get_int_in("layers", 3, 1, 20), 12);
  EXPECT_FALSE(ref_.get_int_in("layers", 3, 1, 2).is_ok());
  EXPECT_EQ(*ref_.get_number("absent", 0.25), 0.25);
  EXPECT_TRUE(*ref_.get_bool("absent", true));
  EXPECT_FALSE(ref_.get_bool("layers", true).is_ok());
  EXPECT_EQ(*ref_.get_string("name", "y"), "x");
  EXPECT_EQ(*ref_.get_string("nothing", "y"), "y");
  EXPECT_TRUE(ref_.has("name"));
  EXPECT_FALSE(ref_.has("nothing"));
  EXPECT_FALSE(ref_.at("sizes").has("name"));
}

TEST(ParseJsonFile, ErrorsStartWithThePath) {
  const std::string path = testing::TempDir() + "broken.json";
  ASSERT_TRUE(write_file(path, "{\"a\": }").is_ok());
  EXPECT_THAT(parse_json_file(path).status().message(), StartsWith(path + ": not valid JSON"));
  EXPECT_EQ(parse_json_file(path + ".absent").status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(write_file(path, "[1]").is_ok());
  EXPECT_EQ(parse_json_file(path)->elements().size(), 1u);
}

}  // namespace
}  // namespace triptych
