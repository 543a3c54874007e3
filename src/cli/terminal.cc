#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace triptych::cli {
namespace {

int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

constexpr int64_t kRedrawMs = 100;
constexpr int kBarWidth = 28;

}  // namespace

bool is_terminal(int fd) { return ::isatty(fd) == 1; }

Colors Colors::for_fd(int fd) {
  if (!is_terminal(fd)) return {};
  return {"\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[0m"};
}

ProgressBar::ProgressBar(std::string label, int64_t total)
    : label_(std::move(label)), total_(total), shown_(is_terminal(2)), start_ms_(now_ms()) {}

ProgressBar::~ProgressBar() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
}

void ProgressBar::update(int64_t done, std::string_view note) {
  const int64_t now = now_ms();
  if (!shown_ || total_ <= 0 || (now - last_ms_ < kRedrawMs && done < total_)) return;
  last_ms_ = now;
  const auto filled = static_cast<int>(done * kBarWidth / total_);
  const double elapsed = static_cast<double>(now - start_ms_) / 1e3;
  const double left =
      done > 0 ? elapsed * static_cast<double>(total_ - done) / static_cast<double>(done) : 0;
  fmt::print(stderr, "\r\x1b[K{} [{:=<{}}{: <{}}] {}/{}  {:.0f}s left  {}", label_, "", filled, "",
             kBarWidth - filled, done, total_, left, note);
  std::fflush(stderr);
}

std::string human_bytes(double n_bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (n_bytes >= 1000 && unit < 4) {
    n_bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", n_bytes)
                   : fmt::format("{:.1f} {}", n_bytes, units[unit]);
}

std::string human_count(double n) {
  if (n >= 1e9) return fmt::format("{:.2f}B", n / 1e9);
  if (n >= 1e6) return fmt::format("{:.1f}M", n / 1e6);
  if (n >= 1e3) return fmt::format("{:.1f}k", n / 1e3);
  return fmt::format("{:.0f}", n);
}

}  // namespace triptych::cli
