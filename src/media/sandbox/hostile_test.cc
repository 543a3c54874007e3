// What hostile files can do to a sandbox: cost it a worker. Decoders that have been taken over are
// played by a function of this test's, which does what is written behind the end of a picture.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <string_view>

#include "media/sandbox/picture_job.h"
#include "media/sandbox/sandbox.h"
#include "media/sandbox/test_sandbox.h"
#include "media/sandbox/worker.h"

namespace triptych {
namespace {

using test::in_process;
using test::in_sandbox;
using test::load_sample;
using testing::HasSubstr;

/// Talks to the program as a worker does, but nonsense.
void say(std::string_view text) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  (void)::sendmsg(sandbox::kSocket, &message, 0);
}

/// The descriptor of the pixels, which is the last that a worker has been given.
constexpr int kPixels = sandbox::kSocket + 2;

void crash() { __builtin_trap(); }
void abort_it() { std::abort(); }
void compute_for_ever() {
  for (;;) asm volatile("" ::: "memory");
}
void leave() { ::_exit(0); }
void say_nothing_known() { say("hello"); }
void say_an_unknown_code() {
  std::string text(20, 'x');
  say(text);
}
void shrink() { (void)::syscall(SYS_ftruncate, kPixels, 0); }
void open_a_file() { (void)::syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY); }
void open_a_socket() { (void)::syscall(SYS_socket, AF_INET, SOCK_STREAM, 0); }
void fork_it() { (void)::syscall(SYS_fork); }
void make_a_thread() { (void)::syscall(SYS_clone, 0, nullptr, nullptr, nullptr, 0); }
void execute() {
  char* const none[] = {nullptr};
  (void)::syscall(SYS_execve, "/bin/true", none, none);
}
void kill_the_parent() { (void)::syscall(SYS_kill, ::getppid(), SIGKILL); }
void signal_another() { (void)::syscall(SYS_tgkill, 1, 1, 0); }
void look_into_another() { (void)::syscall(SYS_ptrace, PTRACE_ATTACH, 1, 0, 0); }
void read_a_neighbour() { (void)::syscall(SYS_process_vm_readv, 1, nullptr, 0, nullptr, 0, 0); }
void make_code() {
  (void)::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
               0);
}
void turn_into_code() {
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  (void)::mprotect(page, 4096, PROT_READ | PROT_EXEC);
}
void talk_elsewhere() {
  msghdr message{};
  (void)::sendmsg(kPixels, &message, 0);
}
void raise_a_limit() {
  const rlimit all{RLIM_INFINITY, RLIM_INFINITY};
  (void)::syscall(SYS_prlimit64, 0, RLIMIT_AS, &all, nullptr);
}
void call_as_32_bits() {
  // The same gate with the numbers of i386: 39 is mkdir there and getpid here.
  long result = 39;
  asm volatile("int $0x80" : "+a"(result) : "b"(0L), "c"(0L), "d"(0L) : "memory");
}

using Deed = void (*)();
// Any of these ends the worker behind a filter of system calls.
const std::map<std::string, Deed> kForbidden = {
    {"!open", open_a_file},
    {"!socket", open_a_socket},
    {"!fork", fork_it},
    {"!clone", make_a_thread},
    {"!exec", execute},
    {"!kill", kill_the_parent},
    {"!tgkill", signal_another},
    {"!ptrace", look_into_another},
    {"!peek", read_a_neighbour},
    {"!code", make_code},
    {"!mprotect", turn_into_code},
    {"!sendmsg", talk_elsewhere},
    {"!prlimit", raise_a_limit},
    {"!ftruncate", shrink},
    {"!i386", call_as_32_bits},
};
// And these end it anyway.
const std::map<std::string, Deed> kDeadly = {
    {"!crash", crash},
    {"!abort", abort_it},
    {"!leave", leave},
    {"!nonsense", say_nothing_known},
    {"!code99", say_an_unknown_code},
};

Result<PixelTensor> hostile_work(std::span<const std::byte> bytes, const ImageRecipe& recipe,
                                 const DecodeOptions& options, ThreadPool& pool) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t at = text.rfind('!');
  const std::string deed(at == std::string_view::npos ? "" : text.substr(at));
  if (const auto found = kForbidden.find(deed); found != kForbidden.end()) found->second();
  if (const auto found = kDeadly.find(deed); found != kDeadly.end()) found->second();
  if (deed == "!compute") compute_for_ever();
  if (deed == "!memory") return PixelTensor{1, 1, std::vector<float>(size_t{300} << 18)};
  if (deed == "!refuse") return resource_exhausted("no memory");
  if (deed == "!short") return PixelTensor{1, 1, {1, 2, 3}};
  return preprocess_image(bytes, recipe, options, pool);
}

std::shared_ptr<Sandbox> start(SandboxOptions options = {}) {
  options.work = &hostile_work;
  auto sandbox = Sandbox::start(options);
  EXPECT_TRUE(sandbox.is_ok()) << sandbox.status().message();
  return sandbox.is_ok() ? *sandbox : nullptr;
}

std::string picture() { return load_sample("jpeg_420.jpg"); }

/// A picture that does this costs its worker, and the next picture finds another.
void expect_costs_a_worker(Sandbox& sandbox, const std::string& deed, StatusCode code,
                           const std::string& message) {
  SCOPED_TRACE(deed);
  const std::vector<pid_t> before = sandbox.worker_pids();
  const auto values = in_sandbox(sandbox, picture() + deed);
  EXPECT_EQ(values.status().code(), code) << values.status().message();
  EXPECT_THAT(values.status().message(), HasSubstr(message));
  EXPECT_TRUE(test::has_ended(before[0]));
  ASSERT_EQ(sandbox.worker_pids().size(), 1u);
  EXPECT_NE(sandbox.worker_pids(), before);
  const auto next = in_sandbox(sandbox, picture());
  ASSERT_TRUE(next.is_ok()) << next.status().message();
  EXPECT_EQ(*next, *in_process(picture()));
}

TEST(HostilePicture, ACrashCostsAWorker) {
  const auto sandbox = start({.workers = 1});
  for (const auto& [deed, _] : kDeadly) {
    expect_costs_a_worker(*sandbox, deed, StatusCode::kDataLoss, "decoder crashed");
  }
}

TEST(HostilePicture, AForbiddenSystemCallCostsAWorker) {
  const auto sandbox = start({.workers = 1});
  if (!sandbox->is_filtered()) GTEST_SKIP() << "no filter of system calls here";
  for (const auto& [deed, _] : kForbidden) {
    expect_costs_a_worker(*sandbox, deed, StatusCode::kDataLoss, "decoder crashed");
  }
}

TEST(HostilePicture, TooMuchTimeCostsAWorker) {
  const auto sandbox = start({.workers = 1, .time_ms = 100});
  expect_costs_a_worker(*sandbox, "!compute", StatusCode::kOutOfRange, "longer than 0.1 s");
}

// One that hangs without computing.
TEST(HostilePicture, AWorkerThatIsStoppedIsReplaced) {
  const auto sandbox = start({.workers = 1, .time_ms = 100});
  ASSERT_EQ(::kill(sandbox->worker_pids()[0], SIGSTOP), 0);
  expect_costs_a_worker(*sandbox, "", StatusCode::kOutOfRange, "longer than 0.1 s");
}

TEST(HostilePicture, TooMuchMemoryIsAnError) {
  if (sandbox::kSanitized) GTEST_SKIP() << "address space is not limited with sanitizers";
  const auto sandbox = start({.workers = 1});
  const std::vector<pid_t> before = sandbox->worker_pids();
  const auto values = in_sandbox(*sandbox, picture() + "!memory");  // 300 MiB
  EXPECT_EQ(values.status().code(), StatusCode::kOutOfRange) << values.status().message();
  EXPECT_THAT(values.status().message(), HasSubstr("more than a picture's decoder may have"));
  EXPECT_TRUE(in_sandbox(*sandbox, picture()).is_ok());
  EXPECT_EQ(sandbox->worker_pids(), before);
}

TEST(HostilePicture, AskingAgainForMemoryWouldNotHelp) {
  const auto sandbox = start({.workers = 1});
  EXPECT_EQ(in_sandbox(*sandbox, picture() + "!refuse").status().code(), StatusCode::kOutOfRange);
}

TEST(HostilePicture, AnotherNumberOfValuesIsAnError) {
  const auto sandbox = start({.workers = 1});
  EXPECT_EQ(in_sandbox(*sandbox, picture() + "!short").status().code(), StatusCode::kInternal);
  EXPECT_TRUE(in_sandbox(*sandbox, picture()).is_ok());
}

TEST(HostilePicture, AWorkerKilledInTheMiddleIsReplaced) {
  const auto sandbox = start({.workers = 1});
  const pid_t victim = sandbox->worker_pids()[0];
  std::thread killer([&] {
    // Once it computes, and does not only end its start.
    int n_seen = 0;
    EXPECT_TRUE(test::becomes([&] {
      n_seen = test::process_state(victim).state == 'R' ? n_seen + 1 : 0;
      return n_seen == 5;
    }));
    (void)::kill(victim, SIGKILL);
  });
  expect_costs_a_worker(*sandbox, "!compute", StatusCode::kUnavailable, "killed from outside");
  killer.join();
}

TEST(HostilePicture, OthersGoOn) {
  const auto sandbox = start({.workers = 2});
  std::vector<std::thread> threads;
  std::atomic<int> n_right{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const bool hostile = t == 0;
      for (int i = 0; i < 10; ++i) {
        const auto values = in_sandbox(*sandbox, picture() + (hostile ? "!crash" : ""));
        n_right += hostile ? values.status().code() == StatusCode::kDataLoss
                           : values.is_ok() && *values == *in_process(picture());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(n_right, 40);
}

/// From now on the system says EPERM to whoever wants to filter system calls.
bool refuse_filters() {
  std::array<sock_filter, 6> program = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(HostilePicture, WithoutAFilterTheRestOfTheSandboxStands) {
  const pid_t program = ::fork();
  ASSERT_GE(program, 0);
  if (program == 0) {
    if (!refuse_filters()) ::_exit(77);
    int code = 0;
    {
      const auto sandbox = start({.workers = 1, .time_ms = 100});
      if (sandbox == nullptr || sandbox->is_filtered()) ::_exit(1);
      expect_costs_a_worker(*sandbox, "!crash", StatusCode::kDataLoss, "decoder crashed");
      expect_costs_a_worker(*sandbox, "!compute", StatusCode::kOutOfRange, "longer than");
      if (testing::Test::HasFailure()) code = 2;
    }
    ::_exit(code);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(program, &status, 0), program);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "the system refuses filters anyway";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace triptych
