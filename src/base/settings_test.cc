#include "base/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace triptych {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Settings with(const std::map<std::string, std::string>& variables) {
  return Settings::from_lookup([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Settings, DefaultsComeFromTheTable) {
  const Settings s = with({});
#define TRIPTYCH_SETTING(field, env, fallback, help) EXPECT_EQ(s.field, fallback) << #field;
#include "base/settings.def"
#undef TRIPTYCH_SETTING
}

TEST(Settings, VariablesOverrideAndEmptyOnesDoNot) {
  EXPECT_EQ(with({{"TRIPTYCH_CPU_ISA", "avx2"}}).cpu_isa, "avx2");
  EXPECT_EQ(with({{"TRIPTYCH_CPU_ISA", ""}}).cpu_isa, Settings().cpu_isa);
  EXPECT_EQ(with({{"TRIPTYCH_CPU_ISA", "avx2"}}).log_level, Settings().log_level);
}

TEST(Settings, TheTableIsComplete) {
  std::set<std::string> fields;
  std::set<std::string> variables;
  for (const SettingInfo& info : setting_table()) {
    fields.insert(info.field);
    variables.insert(info.env);
    EXPECT_THAT(info.env, testing::AnyOf(StartsWith("TRIPTYCH_"), "NOTIFY_SOCKET"));
    EXPECT_GT(std::string_view(info.help).size(), 10u) << info.field;
  }
  EXPECT_EQ(fields.size(), setting_table().size());
  EXPECT_EQ(variables.size(), setting_table().size());
  EXPECT_TRUE(fields.contains("threads"));
}

TEST(Settings, ThreadCount) {
  EXPECT_EQ(*with({{"TRIPTYCH_THREADS", "3"}}).thread_count(), 3);
  EXPECT_EQ(*with({{"TRIPTYCH_THREADS", "1024"}}).thread_count(), 1024);
  EXPECT_EQ(*with({{"TRIPTYCH_THREADS", "0"}}).thread_count(), available_cores());
  EXPECT_GE(available_cores(), 1);
}

TEST(Settings, QuotaOfAContainer) {
  EXPECT_EQ(cores_of_quota("200000 100000\n"), 2);
  EXPECT_EQ(cores_of_quota("150000 100000\n"), 2);
  EXPECT_EQ(cores_of_quota("50000 100000\n"), 1);
  EXPECT_EQ(cores_of_quota("6400000 100000"), 64);
  for (const char* none : {"max 100000\n", "", "200000", "200000 ", "200000 0", "-1 100000", "x y",
                           "99999999999999999999 100000"}) {
    EXPECT_EQ(cores_of_quota(none), 0) << none;
  }
  EXPECT_EQ(cores_of_quota("9223372036854775807 2"), 1 << 20) << "no overflow";
}

TEST(Settings, AWrongThreadCountIsNamed) {
  for (const char* text : {"-1", "1025", "two", "2x", " 2", "2 ", "1e3", "99999999999999999999"}) {
    const Result<int> n = with({{"TRIPTYCH_THREADS", text}}).thread_count();
    ASSERT_FALSE(n.is_ok()) << text;
    EXPECT_EQ(n.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(n.status().message(), HasSubstr("TRIPTYCH_THREADS"));
    EXPECT_THAT(n.status().message(), HasSubstr(text));
  }
}

}  // namespace
}  // namespace triptych
