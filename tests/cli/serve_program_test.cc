// `triptych serve` as who runs it meets it: its settings, where it listens, how it ends.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "run_program.h"
#include "server/http/test_client.h"

namespace triptych {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string temporary(const std::string& name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "serve_program_test";
  std::filesystem::create_directories(folder);
  return (folder / name).string();
}

std::string file_with(const std::string& name, const std::string& text) {
  std::ofstream(temporary(name)) << text;
  return temporary(name);
}

Outcome serve(const std::string& args, const std::string& environment = "") {
  return run("serve " + args, environment);
}

/// A server that runs until this ends.
class Serving {
 public:
  Serving(std::vector<std::string> args, const std::string& notify_socket = "")
      : log_(temporary("log")) {
    std::filesystem::remove(log_);
    process_ = ::fork();
    if (process_ == 0) {
      if (!notify_socket.empty()) ::setenv("NOTIFY_SOCKET", notify_socket.c_str(), 1);
      if (std::freopen(log_.c_str(), "w", stderr) == nullptr) ::_exit(99);
      args.insert(args.begin(), {TRIPTYCH_PROGRAM, "serve"});
      std::vector<char*> raw;
      for (std::string& arg : args) raw.push_back(arg.data());
      raw.push_back(nullptr);
      ::execv(TRIPTYCH_PROGRAM, raw.data());
      ::_exit(99);
    }
  }
  ~Serving() { stop(); }

  std::string log() const {
    std::ifstream file(log_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// Waits for its last line; false when it does not come within half a minute.
  bool ready() const {
    for (int i = 0; i < 3000; ++i) {
      if (log().find("try:  curl") != std::string::npos) return true;
      if (::waitpid(process_, nullptr, WNOHANG) != 0) return false;
      ::usleep(10000);
    }
    return false;
  }
  /// SIGTERM; its exit code.
  int stop() {
    if (process_ <= 0) return -1;
    ::kill(process_, SIGTERM);
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  std::string log_;
  pid_t process_ = -1;
};

TEST(ServeSettings, PrintsAFileThatGivesTheSameSettings) {
  const Outcome first = serve("models/demo --port 8123 --max-body 1MiB --print-config");
  EXPECT_EQ(first.code, 0) << first.out;
  EXPECT_THAT(first.out, HasSubstr("[serve]\n"));
  EXPECT_THAT(first.out, HasSubstr("\nport=8123\n"));
  EXPECT_THAT(first.out, HasSubstr("\nmax-body=1048576\n"));
  EXPECT_THAT(first.out, HasSubstr("\n# api-keys=\"\"\n")) << "what has no value is no setting";
  const std::string file = file_with("printed.toml", first.out);
  EXPECT_EQ(serve("--config " + file + " --print-config").out, first.out);
}

TEST(ServeSettings, AFlagWinsOverTheFileAndThatOverTheEnvironment) {
  const std::string file = file_with("port.toml", "[serve]\nport = 2\n");
  const std::string args = "models/demo --print-config";
  EXPECT_THAT(serve(args, "TRIPTYCH_SERVE_PORT=1").out, HasSubstr("\nport=1\n"));
  EXPECT_THAT(serve(args + " --config " + file, "TRIPTYCH_SERVE_PORT=1").out,
              HasSubstr("\nport=2\n"));
  EXPECT_THAT(serve(args + " --port 3 --config " + file, "TRIPTYCH_SERVE_PORT=1").out,
              HasSubstr("\nport=3\n"));
}

TEST(ServeSettings, NamesWhatIsWrong) {
  const Outcome unknown =
      serve("models/demo --config " + file_with("bad.toml", "[serve]\nprot = 5\n"));
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.out, HasSubstr("serve.prot"));
  const Outcome wrong =
      serve("models/demo --config " + file_with("wrong.toml", "[serve]\nport = \"x\"\n"));
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.out, HasSubstr("port"));
  EXPECT_EQ(serve("models/demo", "TRIPTYCH_SERVE_PORT=x").code, 2);
  EXPECT_EQ(serve("models/demo --config /does/not/exist").code, 2);
  EXPECT_EQ(serve("models/demo --tls-cert a.crt").code, 2);
  EXPECT_THAT(serve("models/demo --tls-cert a.crt --tls-key a.key --port 0").out,
              HasSubstr("a.crt"));
  EXPECT_THAT(serve("models/demo models/demo --port 0").out,
              HasSubstr("two models are called demo"));
  EXPECT_THAT(serve("models/demo --alias a=b --port 0").out, HasSubstr("--alias a=b"));
  EXPECT_THAT(serve("models/demo --alias demo --port 0").out, HasSubstr("--alias demo"));
}

TEST(ServeProgram, AnswersAndEndsWhenTold) {
  const std::string socket = temporary("plain");
  Serving serving({"models/demo", "--unix-socket", socket});
  ASSERT_TRUE(serving.ready()) << serving.log();
  http::TestClient client(socket);
  client.send(http::get("/metrics"));
  const std::string answer = client.receive_all();
  EXPECT_THAT(answer, HasSubstr("\ntriptych_build_info{version=\""));
  EXPECT_THAT(answer, HasSubstr("triptych_requests_running{model_name=\"demo\"} 0\n"));
  EXPECT_EQ(serving.stop(), 0);
}

TEST(ServeProgram, SeveralModelsAtAUnixSocketWithSystemdWaiting) {
  const std::string notify = temporary("notify");
  std::filesystem::remove(notify);
  const int heard = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  notify.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(heard, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const std::string socket = temporary("socket");
  Serving serving({"models/demo", "tests/parity/goldens/llava_clip/checkpoint", "--unix-socket",
                   socket, "--alias", "vision=demo", "--alias", "first", "--memory", "1GiB"},
                  notify);
  ASSERT_TRUE(serving.ready()) << serving.log();
  EXPECT_THAT(serving.log(), HasSubstr("demo, vision, first at " + socket));
  EXPECT_THAT(serving.log(), HasSubstr("curl --unix-socket " + socket));
  std::array<char, 64> word{};
  ASSERT_GT(::recv(heard, word.data(), word.size() - 1, 0), 0);
  EXPECT_STREQ(word.data(), "READY=1");
  for (const char* model : {"demo", "vision", "first", "checkpoint"}) {
    http::TestClient client(socket);
    client.send(
        http::post("/v1/completions",
                   fmt::format(R"({{"model": "{}", "prompt": "a", "max_tokens": 1}})", model)));
    EXPECT_THAT(client.receive_all(), HasSubstr("HTTP/1.1 200 OK")) << model;
  }
  EXPECT_EQ(serving.stop(), 0);
  word = {};
  ASSERT_GT(::recv(heard, word.data(), word.size() - 1, 0), 0);
  EXPECT_STREQ(word.data(), "STOPPING=1");
  ::close(heard);
  EXPECT_FALSE(std::filesystem::exists(socket));
}

}  // namespace
}  // namespace triptych
