#include "server/audit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"

namespace triptych {
namespace {

constexpr mode_t kOwnerOnly = 0600;

int open_file(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kOwnerOnly);
}

Status cannot_open(const std::string& path) {
  return {StatusCode::kPermissionDenied,
          fmt::format("{}: cannot be written: {}", path, std::strerror(errno))};
}

/// UTC to the millisecond, as RFC 3339 writes it.
std::string time_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = ms / 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
  return fmt::format("{}.{:03d}Z", text, ms % 1000);
}

}  // namespace

Result<std::unique_ptr<AuditLog>> AuditLog::open(const std::string& path) {
  const int file = open_file(path);
  if (file < 0) return cannot_open(path);
  return std::unique_ptr<AuditLog>(new AuditLog(path, file));
}

AuditLog::~AuditLog() { ::close(file_); }

void AuditLog::write(const std::string& line) {
  const std::string whole = line + "\n";
  const std::lock_guard lock(mutex_);
  const bool written =
      ::write(file_, whole.data(), whole.size()) == static_cast<ssize_t>(whole.size());
  if (!written && !broken_)
    log_error(fmt::format("{}: lines are lost: {}", path_, std::strerror(errno)));
  broken_ = !written;
}

Status AuditLog::reopen() {
  const int file = open_file(path_);
  if (file < 0) return cannot_open(path_);
  const std::lock_guard lock(mutex_);
  ::close(file_);
  file_ = file;
  return Status::ok();
}

AuditRecord::~AuditRecord() {
  Json out = Json::object();
  out.set("time", Json::string(time_now()));
  out.set("request", Json::string(request));
  out.set("key", key.empty() ? Json() : Json::string(key));
  out.set("client", Json::string(client));
  out.set("method", Json::string(method));
  out.set("path", Json::string(path));
  out.set("model", model.empty() ? Json() : Json::string(model));
  out.set("body_bytes", Json::integer(static_cast<int64_t>(body_bytes)));
  out.set("media", Json::integer(n_media));
  out.set("media_bytes", Json::integer(static_cast<int64_t>(media_bytes)));
  out.set("status", http_status == 0 ? Json() : Json::integer(http_status));
  out.set("finish", finish.empty() ? Json() : Json::string(finish));
  out.set("prompt_tokens", Json::integer(prompt_tokens));
  out.set("completion_tokens", Json::integer(completion_tokens));
  out.set("ms", Json::number(steady_ms() - start_ms));
  log->write(out.dump());
}

}  // namespace triptych
