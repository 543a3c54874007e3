#include "server/openai/error.h"

#include <gtest/gtest.h>

#include "request/sampling_params.h"

namespace triptych::openai {
namespace {

std::string text_of(const Json& error, const char* field) {
  const Json* value = error.find("error")->find(field);
  EXPECT_NE(value, nullptr) << field;  // all four are always there
  return value->is_null() ? "null" : value->string_value();
}

TEST(OpenAiError, NamesThePathAtFault) {
  const Json json = parse_json(R"({"messages": [{"role": 1}]})").value();
  const JsonRef body(json, std::string(kBody));
  const Status status = body.at("messages").at(0).at("role").as_string().status();
  const Json error = error_json(status);
  EXPECT_EQ(text_of(error, "param"), "messages[0].role");
  EXPECT_EQ(text_of(error, "message").substr(0, 18), "messages[0].role: ");
  EXPECT_EQ(text_of(error, "type"), "invalid_request_error");
  EXPECT_EQ(text_of(error, "code"), "null");
}

TEST(OpenAiError, NamesTheFieldThatSamplingComplainsOf) {
  EXPECT_EQ(text_of(error_json(validate({.n = 0})), "param"), "n");
  EXPECT_EQ(text_of(error_json(invalid_argument("the prompt is empty")), "param"), "null");
}

TEST(OpenAiError, HasAStatusForEveryClass) {
  const std::pair<StatusCode, int> kStatuses[] = {
      {StatusCode::kInvalidArgument, 400},   {StatusCode::kDataLoss, 400},
      {StatusCode::kUnsupported, 400},       {StatusCode::kOutOfRange, 400},
      {StatusCode::kPermissionDenied, 403},  {StatusCode::kNotFound, 404},
      {StatusCode::kResourceExhausted, 429}, {StatusCode::kInternal, 500},
      {StatusCode::kUnavailable, 503},       {StatusCode::kDeadlineExceeded, 504}};
  for (const auto& [code, http] : kStatuses) {
    EXPECT_EQ(error_response(Status(code, "x")).status, http) << status_code_name(code);
  }
}

TEST(OpenAiError, KeepsOurFaultsToItself) {
  const Json error = error_json(internal_error("model.cc: pointer 0x7f00"));
  EXPECT_EQ(text_of(error, "message").find("0x"), std::string::npos);
  EXPECT_EQ(text_of(error, "type"), "server_error");
}

TEST(OpenAiError, SaysWhenToTryAgain) {
  const auto has = [](const http::Response& response, std::string_view name) {
    for (const http::Header& h : response.headers) {
      if (h.name == name) return true;
    }
    return false;
  };
  for (const StatusCode code : {StatusCode::kResourceExhausted, StatusCode::kUnavailable}) {
    EXPECT_TRUE(has(error_response(Status(code, "x")), "Retry-After"));
    EXPECT_TRUE(has(error_response(Status(code, "x")), "retry-after-ms"));
  }
  // A client would send what failed inside twice more.
  EXPECT_TRUE(has(error_response(internal_error("x")), "x-should-retry"));
  EXPECT_TRUE(error_response(invalid_argument("x")).headers.empty());
}

}  // namespace
}  // namespace triptych::openai
