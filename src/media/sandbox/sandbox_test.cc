// What a sandbox does for pictures: the values and errors of the process itself, whatever happens
// to its workers between two of them.
#include "media/sandbox/sandbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "media/sandbox/picture_job.h"
#include "media/sandbox/test_sandbox.h"

namespace triptych {
namespace {

using test::in_process;
using test::in_sandbox;
using test::load_sample;
using test::small_recipe;

std::vector<std::string> all_samples() {
  std::vector<std::string> out;
  const Json golden = test::load_golden("decode.json");
  for (const Json& entry : golden.find("cases")->elements()) {
    out.push_back(entry.find("file")->string_value());
  }
  EXPECT_GT(out.size(), 50u);
  return out;
}

ImageRecipe padded_recipe() {
  ImageRecipe recipe = small_recipe();
  recipe.pad_to_square = true;
  recipe.pad_color = {10, 20, 30};
  recipe.resize_rule = ImageRecipe::ResizeRule::kShortestEdge;
  recipe.size_shortest = 40;
  recipe.size_longest = 400;
  recipe.filter = ResampleFilter::kBilinear;
  recipe.center_crop = true;
  recipe.crop_height = 30;
  recipe.crop_width = 36;
  recipe.rescale_factor = 1.0 / 127.5;
  return recipe;
}

void expect_same(const Result<std::vector<float>>& a, const Result<std::vector<float>>& b) {
  EXPECT_EQ(a.status().code(), b.status().code());
  EXPECT_EQ(a.status().message(), b.status().message());
  if (a.is_ok() && b.is_ok()) {
    EXPECT_EQ(*a, *b);
  }
}

TEST(Sandbox, GivesTheValuesOfTheProcessItself) {
  const auto sandbox = Sandbox::start();
  ASSERT_TRUE(sandbox.is_ok()) << sandbox.status().message();
  const DecodeOptions black{.background = {0, 0, 0}};
  for (const std::string& name : all_samples()) {
    SCOPED_TRACE(name);
    const std::string file = load_sample(name);
    const auto values = in_sandbox(**sandbox, file);
    ASSERT_TRUE(values.is_ok()) << values.status().message();
    expect_same(values, in_process(file));
    expect_same(in_sandbox(**sandbox, file, padded_recipe(), black),
                in_process(file, padded_recipe(), black));
  }
}

TEST(Sandbox, GivesTheErrorsOfTheProcessItself) {
  const auto sandbox = Sandbox::start();
  ASSERT_TRUE(sandbox.is_ok()) << sandbox.status().message();
  const std::vector<pid_t> before = (*sandbox)->worker_pids();
  const DecodeOptions options{.limits = {.max_pixels = 1 << 20}};
  uint32_t state = 7;
  for (const std::string& name : all_samples()) {
    SCOPED_TRACE(name);
    const std::string file = load_sample(name);
    const std::string half = file.substr(0, file.size() / 2);
    expect_same(in_sandbox(**sandbox, half), in_process(half));
    for (int i = 0; i < 10; ++i) {
      std::string broken = file;
      for (int k = 0; k < 3; ++k) {
        state = state * 1664525u + 1013904223u;
        broken[(state >> 8) % broken.size()] = static_cast<char>(state);
      }
      expect_same(in_sandbox(**sandbox, broken, small_recipe(), options),
                  in_process(broken, small_recipe(), options));
    }
  }
  expect_same(in_sandbox(**sandbox, ""), in_process(""));
  expect_same(in_sandbox(**sandbox, "GIF98a"), in_process("GIF98a"));
  EXPECT_EQ((*sandbox)->worker_pids(), before);  // no file cost a worker
}

// Room for values is kept from one picture to the next, unless it is large.
TEST(Sandbox, AnySizeFollowsAnyOther) {
  const auto sandbox = Sandbox::start({.workers = 1});
  ASSERT_TRUE(sandbox.is_ok()) << sandbox.status().message();
  const std::string file = load_sample("jpeg_420.jpg");
  for (const int64_t side : {24, 40, 8, 1300, 16, 1200}) {
    ImageRecipe recipe = small_recipe();
    recipe.size_height = recipe.size_width = side;
    expect_same(in_sandbox(**sandbox, file, recipe), in_process(file, recipe));
  }
}

TEST(Sandbox, ARecipeArrivesAsItWas) {
  for (const ImageRecipe& recipe : {small_recipe(), padded_recipe(), ImageRecipe()}) {
    auto job = sandbox::make_job(recipe, {}, 1, 1);
    ASSERT_TRUE(job.is_ok());
    const auto back = sandbox::recipe_of(*job);
    ASSERT_TRUE(back.is_ok());
    EXPECT_EQ(image_recipe_key(*back), image_recipe_key(recipe));
    job->recipe.std[2] += 1;
    EXPECT_EQ(sandbox::recipe_of(*job).status().code(), StatusCode::kInternal);
  }
}

TEST(Sandbox, RepliesAreReadWithCare) {
  size_t n = 0;
  sandbox::PictureReply reply = sandbox::make_reply(data_loss("a\tb\x1b[31m\xff"), n);
  EXPECT_EQ(sandbox::read_reply(reply, n)->message(), "a?b?[31m?");
  EXPECT_EQ(sandbox::read_reply(reply, n)->code(), StatusCode::kDataLoss);
  EXPECT_EQ(sandbox::read_reply(reply, n - 2)->message(), "a?b?[31");
  for (const size_t wrong : {size_t{0}, size_t{3}, sizeof reply + 1}) {
    EXPECT_FALSE(sandbox::read_reply(reply, wrong)) << wrong;
  }
  reply.code = 99;
  EXPECT_FALSE(sandbox::read_reply(reply, n));
  const std::string endless(5000, 'x');
  reply = sandbox::make_reply(internal_error(endless), n);
  EXPECT_EQ(n, sizeof reply);
  EXPECT_EQ(sandbox::read_reply(reply, n)->message().size(), reply.message.size());
}

TEST(Sandbox, ManyThreadsAtOnce) {
  const auto sandbox = Sandbox::start({.workers = 3, .pictures_per_worker = 7});
  ASSERT_TRUE(sandbox.is_ok()) << sandbox.status().message();
  std::vector<std::string> files;
  for (const char* name : {"jpeg_420.jpg", "lossy.webp", "png_type6_depth16.png", "palette.gif"}) {
    files.push_back(load_sample(name));
  }
  std::vector<std::vector<float>> expected;
  for (const std::string& file : files) expected.push_back(in_process(file).value());
  std::atomic<int> n_same{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 12; ++i) {
        const size_t f = (t + i) % files.size();
        const auto values = in_sandbox(**sandbox, files[f]);
        if (values.is_ok() && *values == expected[f]) ++n_same;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(n_same, 8 * 12);
  EXPECT_EQ((*sandbox)->worker_pids().size(), 3u);
}

TEST(Sandbox, AWorkerMakesRoomAfterItsPictures) {
  const auto sandbox = Sandbox::start({.workers = 1, .pictures_per_worker = 2});
  ASSERT_TRUE(sandbox.is_ok()) << sandbox.status().message();
  const std::string file = load_sample("jpeg_420.jpg");
  const auto pid = [&] { return (*sandbox)->worker_pids().at(0); };
  const pid_t first = pid();
  ASSERT_TRUE(in_sandbox(**sandbox, file).is_ok());
  EXPECT_EQ(pid(), first);
  ASSERT_TRUE(in_sandbox(**sandbox, file).is_ok());
  EXPECT_NE(pid(), first);
  EXPECT_TRUE(test::has_ended(first));
  EXPECT_TRUE(in_sandbox(**sandbox, file).is_ok());
}

TEST(Sandbox, AnIdleWorkerThatIsKilledIsReplaced) {
  const auto sandbox = Sandbox::start({.workers = 2});
  ASSERT_TRUE(sandbox.is_ok()) << sandbox.status().message();
  const std::string file = load_sample("jpeg_420.jpg");
  const std::vector<pid_t> before = (*sandbox)->worker_pids();
  for (const pid_t pid : before) ASSERT_EQ(::kill(pid, SIGKILL), 0);
  for (const pid_t pid : before) EXPECT_TRUE(test::becomes([&] { return test::has_ended(pid); }));
  // By its own thread, or by the picture that finds it dead.
  EXPECT_TRUE(in_sandbox(**sandbox, file).is_ok());
  EXPECT_TRUE(test::becomes([&] {
    const std::vector<pid_t> now = (*sandbox)->worker_pids();
    return now.size() == 2 &&
           std::find_first_of(now.begin(), now.end(), before.begin(), before.end()) == now.end();
  }));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(in_sandbox(**sandbox, file).is_ok());
}

/// The process that forked a worker.
pid_t parent_of(pid_t worker) { return test::process_state(worker).parent; }

TEST(Sandbox, ItsEndIsThatOfItsProcesses) {
  std::vector<pid_t> pids;
  {
    const auto sandbox = Sandbox::start();
    ASSERT_TRUE(sandbox.is_ok()) << sandbox.status().message();
    pids = (*sandbox)->worker_pids();
    pids.push_back(parent_of(pids.at(0)));
  }
  for (const pid_t pid : pids) EXPECT_TRUE(test::has_ended(pid));
}

// Nothing is left behind by a program that had no time to end anything.
TEST(Sandbox, ItsProcessesDieWithTheProgram) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t program = ::fork();
  ASSERT_GE(program, 0);
  if (program == 0) {
    const auto sandbox = Sandbox::start({.workers = 2});
    std::array<pid_t, 3> pids{};
    if (sandbox.is_ok()) {
      const std::vector<pid_t> workers = (*sandbox)->worker_pids();
      pids = {workers.at(0), workers.at(1), parent_of(workers.at(0))};
    }
    (void)!::write(pipe_ends[1], pids.data(), sizeof pids);
    (void)::kill(::getpid(), SIGKILL);
  }
  std::array<pid_t, 3> pids{};
  ASSERT_EQ(::read(pipe_ends[0], pids.data(), sizeof pids), static_cast<ssize_t>(sizeof pids));
  ASSERT_EQ(::waitpid(program, nullptr, 0), program);
  for (const pid_t pid : pids) {
    ASSERT_GT(pid, 0);
    EXPECT_TRUE(test::becomes([&] { return test::has_ended(pid); })) << pid;
  }
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

// A terminal's Ctrl-C and a service manager's SIGTERM reach all processes, while the server still
// answers what it has.
TEST(Sandbox, SignalsThatEndAServerAreNotForWorkers) {
  const auto sandbox = Sandbox::start({.workers = 1});
  ASSERT_TRUE(sandbox.is_ok()) << sandbox.status().message();
  const std::vector<pid_t> before = (*sandbox)->worker_pids();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    ASSERT_EQ(::kill(before[0], signal), 0);
    ASSERT_EQ(::kill(parent_of(before[0]), signal), 0);
  }
  EXPECT_TRUE(in_sandbox(**sandbox, load_sample("jpeg_420.jpg")).is_ok());
  EXPECT_EQ((*sandbox)->worker_pids(), before);
}

}  // namespace
}  // namespace triptych
