#include "observe/trace_writer.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/json.h"

namespace triptych {
namespace {

std::string text_of(const Json& event, std::string_view key) {
  const Json* value = event.find(key);
  return value == nullptr ? "" : value->string_value();
}

TEST(TraceWriter, WhatThreadsWriteAtOnceIsOneJsonArrayInOrder) {
  const std::string path = testing::TempDir() + "trace.json";
  {
    auto writer = TraceWriter::open(path);
    ASSERT_TRUE(writer.is_ok()) << writer.status().message();
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&trace = **writer, t] {
        const TraceWriter::Track track = trace.add_track("thread \"" + std::to_string(t) + "\"");
        for (int i = 0; i < 50; ++i) trace.slice(track, "work", i, i + 0.5, {{"rows", i}});
      });
    }
    for (std::thread& thread : threads) thread.join();
    (*writer)->counter("pages", 3, 17);
  }
  const Result<Json> json = parse_json_file(path);
  ASSERT_TRUE(json.is_ok()) << json.status().message();
  std::map<int64_t, double> last;
  int n_slices = 0;
  for (const Json& event : json->elements()) {
    if (text_of(event, "ph") != "X") continue;
    ++n_slices;
    double& before = last.try_emplace(event.find("tid")->int_value(), -1).first->second;
    EXPECT_GT(event.find("ts")->number_value(), before);
    before = event.find("ts")->number_value();
    EXPECT_EQ(event.find("dur")->number_value(), 500);
  }
  EXPECT_EQ(n_slices, 150);
  EXPECT_EQ(json->elements().back().find("args")->find("value")->number_value(), 17);
}

TEST(TraceWriter, AnAnswerIsASpanAroundItsStages) {
  const std::string path = testing::TempDir() + "answer.json";
  {
    auto writer = TraceWriter::open(path);
    ASSERT_TRUE(writer.is_ok());
    Timeline timeline;
    timeline.clock = StageClock(Stage::kQueue, 1);
    timeline.clock.enter(Stage::kPrefill, 2);
    timeline.clock.end(5);
    (*writer)->answer(7, 1, timeline, "stop");
  }
  const Result<Json> json = parse_json_file(path);
  ASSERT_TRUE(json.is_ok()) << json.status().message();
  std::vector<std::string> seen;
  for (const Json& event : json->elements()) {
    if (text_of(event, "ph") == "M") continue;
    EXPECT_EQ(text_of(event, "id"), "7.1");
    seen.push_back(text_of(event, "ph") + " " + text_of(event, "name") + " " +
                   std::to_string(event.find("ts")->int_value()));
  }
  EXPECT_EQ(seen,
            (std::vector<std::string>{"b request 7 1000", "b queue 1000", "e queue 2000",
                                      "b prefill 2000", "e prefill 5000", "e request 7 5000"}));
}

TEST(TraceWriter, AFileThatCannotBeWrittenIsNamed) {
  const auto writer = TraceWriter::open("/nowhere/trace.json");
  EXPECT_EQ(writer.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(writer.status().message().find("/nowhere/trace.json"), std::string::npos);
}

}  // namespace
}  // namespace triptych
