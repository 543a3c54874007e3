#include "server/openai/data_uri.h"

#include <gtest/gtest.h>

namespace triptych::openai {
namespace {

// Field case F18: parameters and any letter case are accepted, a missing type too.
TEST(DataUri, TakesParametersAndAnyCase) {
  for (const char* url : {"data:image/png;base64,Zm9v", "data:image/png;charset=utf-8;base64,Zm9v",
                          "data:image/png;name=a.png;base64,Zm9v", "DATA:Image/PNG;BASE64,Zm9v"}) {
    const Result<DataUri> uri = parse_data_uri(url);
    ASSERT_TRUE(uri.is_ok()) << url;
    EXPECT_EQ(uri->media_type, "image/png") << url;
    EXPECT_EQ(uri->bytes, "foo") << url;
  }
  const Result<DataUri> untyped = parse_data_uri("data:;base64,Zm9v");
  ASSERT_TRUE(untyped.is_ok());
  EXPECT_EQ(untyped->media_type, "");
}

TEST(DataUri, RefusesWhatIsNone) {
  for (const char* url :
       {"", "data:", "data:image/png;base64", "data:image/png,foo", "data:image/png;base64x,Zm9v",
        "data:image/png;base64,Zm9vY", "http://127.0.0.1/a.png", "file:///a.png", "/a.png"}) {
    EXPECT_EQ(parse_data_uri(url).status().code(), StatusCode::kInvalidArgument) << url;
  }
}

}  // namespace
}  // namespace triptych::openai
