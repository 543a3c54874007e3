// `triptych serve` as it is started, asked and told to end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "server/http/test_client.h"

namespace triptych {
namespace {

using testing::HasSubstr;

/// The program, serving on a port of its choice; its stderr is read here.
class ServedProgram {
 public:
  ServedProgram() {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    std::string words[] = {TRIPTYCH_PROGRAM, "serve", "models/demo", "--port", "0"};
    char* arguments[] = {words[0].data(), words[1].data(), words[2].data(),
                         words[3].data(), words[4].data(), nullptr};
    EXPECT_EQ(posix_spawn(&pid_, TRIPTYCH_PROGRAM, &actions, nullptr, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    stderr_ = ends[0];
  }
  ~ServedProgram() { ::close(stderr_); }
  ServedProgram(const ServedProgram&) = delete;
  ServedProgram& operator=(const ServedProgram&) = delete;

  /// Where it says that it listens; 0 when it ends without saying so.
  uint16_t port() {
    constexpr std::string_view kAddress = "http://127.0.0.1:";
    std::string said;
    char byte = 0;
    while (::read(stderr_, &byte, 1) == 1) {
      said += byte;
      const size_t at = said.find(kAddress);
      if (at == std::string::npos || byte != '\n') continue;
      return static_cast<uint16_t>(std::atoi(said.c_str() + at + kAddress.size()));
    }
    ADD_FAILURE() << said;
    return 0;
  }
  /// Its exit code once told to end; 128 and more: a signal ended it.
  int end() const {
    ::kill(pid_, SIGTERM);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  int stderr_ = -1;
};

TEST(ServeProgram, ListensAnswersAndEndsWhenTold) {
  ServedProgram program;
  http::TestClient client(program.port());
  client.send(http::get("/metrics"));
  const std::string answer = client.receive_all();
  EXPECT_THAT(answer, HasSubstr("\ntriptych_build_info{version=\""));
  EXPECT_THAT(answer, HasSubstr("triptych_requests_running{model_name=\"demo\"} 0\n"));
  EXPECT_EQ(program.end(), 0);
}

}  // namespace
}  // namespace triptych
