#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace triptych::cli {

/// True when the stream (1 stdout, 2 stderr) is a terminal that wants colours (NO_COLOR unset is
/// the caller's affair: see Colors).
bool is_terminal(int fd);

/// Escape codes for stdout, or empty strings when it is not a terminal.
struct Colors {
  std::string_view dim, bold, red, green, reset;
  static Colors for_fd(int fd);
};

/// A progress line on stderr, rewritten in place on a terminal and silent elsewhere.
class ProgressBar {
 public:
  ProgressBar(std::string label, int64_t total);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// `done` of the total, with a note behind the bar.
  void update(int64_t done, std::string_view note);

 private:
  std::string label_;
  int64_t total_;
  bool shown_;
  int64_t start_ms_;
  int64_t last_ms_ = -1000;
};

/// "27.4 MB", "1.2 GB": decimal units.
std::string human_bytes(double n_bytes);
/// "13.7M", "1.10B".
std::string human_count(double n);

}  // namespace triptych::cli
