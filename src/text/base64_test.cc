#include "text/base64.h"

#include <gtest/gtest.h>

namespace triptych {
namespace {

TEST(Base64, DecodesTheVectorsOfRfc4648) {
  EXPECT_EQ(*base64_decode(""), "");
  EXPECT_EQ(*base64_decode("Zg=="), "f");
  EXPECT_EQ(*base64_decode("Zm8="), "fo");
  EXPECT_EQ(*base64_decode("Zm8"), "fo");
  EXPECT_EQ(*base64_decode("Zm9vYmFy"), "foobar");
  EXPECT_EQ(*base64_decode("AP/+"), std::string("\0\xff\xfe", 3));
}

TEST(Base64, RefusesWhatIsNone) {
  for (const char* text : {"Z", "Z===", "Zh==", "Zm9v!mFy", "Zm 9v", "Zm9v\n", "Z\xc3\xa9=="}) {
    EXPECT_EQ(base64_decode(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace triptych
