#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/status.h"

namespace triptych {

/// A file of what was asked by whom and what became of it, a JSON object a line; nothing of what
/// was said or shown. Thread-safe. A file that cannot be written (a full disk) is said once in the
/// log and stops nobody.
class AuditLog {
 public:
  /// Appends to the file, which only its owner may read. The error names the path.
  static Result<std::unique_ptr<AuditLog>> open(const std::string& path);
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  void write(const std::string& line);
  /// Goes on in a new file of the same name, when somebody has put the old one aside.
  Status reopen();

 private:
  AuditLog(std::string path, int file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  std::mutex mutex_;
  int file_;
  bool broken_ = false;
};

/// One request's line, written when the last who knows of the request lets go of this.
struct AuditRecord {
  AuditRecord(AuditLog& audit_log, double start) : log(&audit_log), start_ms(start) {}
  ~AuditRecord();
  AuditRecord(const AuditRecord&) = delete;
  AuditRecord& operator=(const AuditRecord&) = delete;

  AuditLog* log;
  double start_ms;      ///< of steady_ms()
  std::string request;  ///< its id
  std::string key;      ///< the name of its key; empty: none
  std::string client;
  std::string method;
  std::string path;
  std::string model;
  uint64_t body_bytes = 0;
  int64_t n_media = 0;
  uint64_t media_bytes = 0;
  int http_status = 0;  ///< 0: the client had gone
  std::string finish;   ///< of an answer
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
};

}  // namespace triptych
