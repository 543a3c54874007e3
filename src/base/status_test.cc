#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace triptych {
namespace {

constexpr StatusCode kAllCodes[] = {StatusCode::kOk,
                                    StatusCode::kInvalidArgument,
                                    StatusCode::kNotFound,
                                    StatusCode::kPermissionDenied,
                                    StatusCode::kDataLoss,
                                    StatusCode::kUnsupported,
                                    StatusCode::kOutOfRange,
                                    StatusCode::kResourceExhausted,
                                    StatusCode::kFailedPrecondition,
                                    StatusCode::kDeadlineExceeded,
                                    StatusCode::kCancelled,
                                    StatusCode::kUnavailable,
                                    StatusCode::kInternal};

TEST(Status, IsOkByDefault) {
  const Status s;
  EXPECT_TRUE(s.is_ok());
  EXPECT_EQ(s.code(), StatusCode::kOk);
  EXPECT_EQ(s.message(), "");
  EXPECT_TRUE(Status::ok().is_ok());
}

TEST(Status, KeepsCodeAndMessage) {
  const Status s = unsupported("JPEG 2000");
  EXPECT_FALSE(s.is_ok());
  EXPECT_EQ(s.code(), StatusCode::kUnsupported);
  EXPECT_EQ(s.message(), "JPEG 2000");
}

TEST(Status, ContextStandsInFrontOfAnErrorAndLeavesOkAlone) {
  EXPECT_EQ(data_loss("truncated").with_context("a.png").message(), "a.png: truncated");
  EXPECT_EQ(data_loss("truncated").with_context("a.png").code(), StatusCode::kDataLoss);
  EXPECT_TRUE(Status::ok().with_context("a.png").is_ok());
  EXPECT_EQ(Status::ok().with_context("a.png").message(), "");
}

TEST(Status, MakersGiveTheirCode) {
  EXPECT_EQ(invalid_argument("").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(not_found("").code(), StatusCode::kNotFound);
  EXPECT_EQ(data_loss("").code(), StatusCode::kDataLoss);
  EXPECT_EQ(out_of_range("").code(), StatusCode::kOutOfRange);
  EXPECT_EQ(resource_exhausted("").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(failed_precondition("").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(internal_error("").code(), StatusCode::kInternal);
}

TEST(Status, EveryCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const StatusCode code : kAllCodes) names.insert(status_code_name(code));
  EXPECT_EQ(names.size(), std::size(kAllCodes));
  EXPECT_FALSE(names.contains("UNKNOWN"));
}

TEST(Status, ExitCodesTellClassesApart) {
  for (const StatusCode code : kAllCodes) {
    EXPECT_EQ(exit_code(code) == 0, code == StatusCode::kOk) << status_code_name(code);
  }
  EXPECT_EQ(exit_code(StatusCode::kInvalidArgument), 2);
  EXPECT_EQ(exit_code(StatusCode::kNotFound), 3);
  EXPECT_EQ(exit_code(StatusCode::kPermissionDenied), 3);
  EXPECT_EQ(exit_code(StatusCode::kDataLoss), 4);
  EXPECT_EQ(exit_code(StatusCode::kUnsupported), 5);
  EXPECT_EQ(exit_code(StatusCode::kOutOfRange), 6);
  EXPECT_EQ(exit_code(StatusCode::kResourceExhausted), 6);
  EXPECT_EQ(exit_code(StatusCode::kCancelled), 7);
  EXPECT_EQ(exit_code(StatusCode::kInternal), 70);
}

TEST(Result, HoldsAValueOrAnError) {
  Result<int> good = 7;
  ASSERT_TRUE(good.is_ok());
  EXPECT_EQ(*good, 7);
  EXPECT_TRUE(good.status().is_ok());
  *good = 8;
  EXPECT_EQ(good.value(), 8);

  const Result<int> bad = not_found("no such thing");
  ASSERT_FALSE(bad.is_ok());
  EXPECT_EQ(bad.status().code(), StatusCode::kNotFound);
}

TEST(Result, AnOkStatusIsNoValue) {
  const Result<int> r = Status::ok();
  ASSERT_FALSE(r.is_ok());
  EXPECT_EQ(r.status().code(), StatusCode::kInternal);
}

TEST(Result, MovesOutWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> r = std::make_unique<int>(3);
  const std::unique_ptr<int> p = std::move(r).value();
  EXPECT_EQ(*p, 3);
}

TEST(Result, ArrowReachesMembers) {
  const Result<std::string> r = std::string("abc");
  EXPECT_EQ(r->size(), 3u);
}

Result<int> half(int n) {
  if (n % 2 != 0) return invalid_argument("odd");
  return n / 2;
}

Result<int> quarter(int n) {
  TRIPTYCH_ASSIGN_OR_RETURN(const int once, half(n));
  int twice = 0;
  TRIPTYCH_ASSIGN_OR_RETURN(twice, half(once));
  return twice;
}

Status check_quarter(int n) {
  TRIPTYCH_RETURN_IF_ERROR(quarter(n).status());
  return Status::ok();
}

TEST(Status, OfAnExceptionTellsMissingMemoryFromAFaultOfOurs) {
  const auto status_of = [](const auto& thrown) {
    try {
      throw thrown;
    } catch (...) {
      return status_of_exception("reading");
    }
  };
  EXPECT_EQ(status_of(std::bad_alloc()).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status_of(std::bad_alloc()).message(), "no memory left while reading");
  EXPECT_EQ(status_of(std::runtime_error("surprise")).code(), StatusCode::kInternal);
  EXPECT_EQ(status_of(std::runtime_error("surprise")).message(), "reading threw: surprise");
  EXPECT_EQ(status_of(7).code(), StatusCode::kInternal);
}

TEST(Result, MacrosPassValuesOnAndErrorsUp) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).status().message(), "odd");
  EXPECT_EQ(quarter(3).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(check_quarter(8).is_ok());
  EXPECT_FALSE(check_quarter(9).is_ok());
}

}  // namespace
}  // namespace triptych
