#pragma once

#include <string>

#include "base/status.h"

namespace triptych::http {

/// The file of a unix socket: removed when this ends.
class UnixSocketFile {
 public:
  /// Makes way for a socket at `path`: what an earlier server left there is removed. kUnavailable
  /// when somebody listens there, kInvalidArgument when something else lies there or the path is
  /// too long for a socket.
  static Result<UnixSocketFile> claim(std::string path);
  ~UnixSocketFile();
  UnixSocketFile(UnixSocketFile&& other) noexcept;
  UnixSocketFile& operator=(UnixSocketFile&& other) noexcept;

 private:
  explicit UnixSocketFile(std::string path) : path_(std::move(path)) {}
  std::string path_;  ///< empty: nothing to remove
};

}  // namespace triptych::http
