#include "prep/media_flights.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace triptych {
namespace {

using Media = MediaFlights::Media;

/// Four threads ask for the same item while it is being prepared; what each of them got.
std::vector<Result<Media>> ask_at_once(MediaFlights& flights, const MediaFlights::Work& work,
                                       int& n_runs) {
  constexpr int64_t kThreads = 4;
  std::vector<Result<Media>> out(kThreads, Result<Media>(Media()));
  std::vector<std::thread> threads;
  for (Result<Media>& got : out) {
    threads.emplace_back([&] {
      got = flights.run({0, MediaId{1}}, [&] {
        ++n_runs;
        while (flights.n_waiting() < kThreads - 1) std::this_thread::yield();
        return work();
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return out;
}

TEST(MediaFlights, OneDoesTheWorkAndAllGetTheSame) {
  MediaFlights flights;
  int n_runs = 0;
  const auto media = std::make_shared<const PreparedMedia>();
  for (const auto& got : ask_at_once(
           flights, [&] { return Result<Media>(media); }, n_runs)) {
    ASSERT_TRUE(got.is_ok());
    EXPECT_EQ(*got, media);
  }
  EXPECT_EQ(n_runs, 1);
}

TEST(MediaFlights, AnErrorGoesToAllWhoWaitAndTheNextTriesAgain) {
  MediaFlights flights;
  int n_runs = 0;
  const auto failing = [] { return Result<Media>(data_loss("truncated")); };
  for (const auto& got : ask_at_once(flights, failing, n_runs)) {
    EXPECT_EQ(got.status().code(), StatusCode::kDataLoss);
  }
  EXPECT_EQ(n_runs, 1);
  EXPECT_TRUE(flights.run({0, MediaId{1}}, [] { return Result<Media>(Media()); }).is_ok());
}

TEST(MediaFlights, AnExceptionIsAnErrorForAllWhoWait) {
  MediaFlights flights;
  int n_runs = 0;
  const auto throwing = []() -> Result<Media> { throw std::runtime_error("surprise"); };
  for (const auto& got : ask_at_once(flights, throwing, n_runs)) {
    EXPECT_EQ(got.status().code(), StatusCode::kInternal);
    EXPECT_NE(got.status().message().find("surprise"), std::string::npos);
  }
  EXPECT_EQ(n_runs, 1);
}

TEST(MediaFlights, OtherMediaAndOtherTenantsDoNotWait) {
  MediaFlights flights;
  int n_runs = 0;
  const auto counted = [&](const MediaFlights::Work& then) {
    return [&n_runs, then] {
      ++n_runs;
      return then();
    };
  };
  const auto nothing = [] { return Result<Media>(Media()); };
  const auto other_tenant = [&] { return flights.run({1, MediaId{1}}, counted(nothing)); };
  const auto other_media = [&] { return flights.run({0, MediaId{2}}, counted(other_tenant)); };
  EXPECT_TRUE(flights.run({0, MediaId{1}}, counted(other_media)).is_ok());
  EXPECT_EQ(n_runs, 3) << "each inside the one before, none waiting for it";
}

}  // namespace
}  // namespace triptych
