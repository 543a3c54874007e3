#include "server/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace triptych {
namespace {

using testing::HasSubstr;

http::Request with_key(const std::string& authorization) {
  http::Request request;
  request.headers = {{"authorization", authorization}};
  return request;
}

std::string name_of(const AccessControl& access, const std::string& authorization) {
  const std::optional<Caller> caller = access.identify(with_key(authorization));
  return caller ? caller->name : "nobody";
}

TEST(AccessControl, KnowsKeysByTheirHashesAlone) {
  const NewApiKey ann = new_api_key("ann").value();
  const NewApiKey ben = new_api_key("ben").value();
  EXPECT_NE(ann.key, ben.key);
  EXPECT_EQ(ann.line.find(ann.key), std::string::npos);
  AccessControl access;
  EXPECT_TRUE(access.is_open());
  ASSERT_TRUE(access.load("# ours\n" + ann.line + "\r\n\n  " + ben.line + "  ", "keys").is_ok());
  EXPECT_FALSE(access.is_open());
  EXPECT_EQ(name_of(access, "Bearer " + ann.key), "ann");
  EXPECT_EQ(name_of(access, "bearer  " + ben.key), "ben");
  EXPECT_NE(access.identify(with_key("Bearer " + ann.key))->tenant,
            access.identify(with_key("Bearer " + ben.key))->tenant);
}

TEST(AccessControl, LetsNobodyElseIn) {
  AccessControl access;
  access.add("ann", "secret");
  EXPECT_EQ(name_of(access, "Bearer secret"), "ann");
  for (const char* authorization :
       {"", "Bearer", "Bearer ", "Bearer  ", "secret", "Basic secret", "Bearer secre",
        "Bearer secrets", "Bearer SECRET", "Bearer secret secret"}) {
    EXPECT_EQ(name_of(access, authorization), "nobody") << authorization;
  }
  EXPECT_FALSE(access.identify({}).has_value());
  // The hash itself is no key.
  const NewApiKey ben = new_api_key("ben").value();
  ASSERT_TRUE(access.load(ben.line, "keys").is_ok());
  EXPECT_EQ(name_of(access, "Bearer " + ben.line.substr(4)), "nobody");
  EXPECT_EQ(name_of(access, "Bearer secret"), "nobody");
}

TEST(AccessControl, ATenantStaysTheSameOverReloads) {
  const NewApiKey ann = new_api_key("ann").value();
  const NewApiKey ben = new_api_key("ben").value();
  AccessControl access;
  ASSERT_TRUE(access.load(ann.line + "\n" + ben.line, "keys").is_ok());
  const uint32_t tenant = access.identify(with_key("Bearer " + ben.key))->tenant;
  EXPECT_NE(tenant, 0u);  // that of servers without keys
  ASSERT_TRUE(access.load(ben.line, "keys").is_ok());
  EXPECT_EQ(access.identify(with_key("Bearer " + ben.key))->tenant, tenant);
  EXPECT_EQ(name_of(access, "Bearer " + ann.key), "nobody");
}

TEST(AccessControl, SaysWhichLineIsWrongAndKeepsWhatItHas) {
  AccessControl access;
  access.add("ann", "secret");
  const std::string hash(64, 'a');
  for (const std::string& bad : std::initializer_list<std::string>{
           "", "ann", "ann blake3:12", "ann sha256:" + hash, "ann blake3:" + hash.substr(1) + "g",
           "ann blake3:" + hash + " more", "ann blake3:" + hash + "\nann blake3:" + hash}) {
    const Status status = access.load("# first line\n" + bad, "keys.txt");
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(status.message(), HasSubstr("keys.txt")) << bad;
  }
  EXPECT_EQ(name_of(access, "Bearer secret"), "ann");
}

TEST(AccessControl, ReadsTheLimitsOfAKey) {
  const NewApiKey ann = new_api_key("ann").value();
  AccessControl access;
  ASSERT_TRUE(access
                  .load(ann.line + " requests_per_min=60\ttokens_per_min=1000 "
                                   "media_bytes_per_min=5 requests_at_once=2",
                        "keys")
                  .is_ok());
  const KeyLimits limits = access.identify(with_key("Bearer " + ann.key))->limits;
  EXPECT_EQ(limits.requests_per_min, 60);
  EXPECT_EQ(limits.tokens_per_min, 1000);
  EXPECT_EQ(limits.media_bytes_per_min, 5);
  EXPECT_EQ(limits.requests_at_once, 2);
  for (const char* bad : {"requests=5", "requests_per_min", "requests_per_min=", "=5",
                          "requests_per_min=0", "requests_per_min=-1", "requests_per_min=5x"}) {
    const Status status = access.load(ann.line + " " + bad, "keys.txt");
    EXPECT_THAT(status.message(), HasSubstr("keys.txt:1")) << bad;
    EXPECT_THAT(status.message(), HasSubstr("tokens_per_min")) << bad;
  }
}

TEST(NewApiKey, NeedsAName) {
  for (const char* name : {"", " ", "a b", "#a", "a\n"}) {
    EXPECT_FALSE(new_api_key(name).is_ok()) << name;
  }
}

}  // namespace
}  // namespace triptych
