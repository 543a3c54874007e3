#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace triptych {

struct Outcome {
  int code = -1;
  std::string out;  ///< stdout and stderr
};

/// Runs `triptych ARGS` through the shell, with `environment` ("NAME=value") and standard input
/// from a file.
inline Outcome run(const std::string& args, const std::string& environment = "",
                   const std::string& input = "/dev/null") {
  Outcome out;
  const std::string command =
      fmt::format("{} {} {} 2>&1 < {}", environment, TRIPTYCH_PROGRAM, args, input);
  FILE* pipe = ::popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::array<char, 4096> buffer{};
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    out.out.append(buffer.data(), n);
  }
  const int status = ::pclose(pipe);
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return out;
}

}  // namespace triptych
