#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "server/remote/address.h"
#include "server/remote/url.h"

namespace triptych {

/// Where media may come from beside the request itself. Nothing, unless it is said here.
struct MediaSources {
  std::vector<std::string> hosts;               ///< as is_listed_host() takes them
  std::vector<std::string> folders;             ///< file:// names below these are read
  uint64_t max_bytes = uint64_t{32} << 20;      ///< of all media of a request
  std::chrono::milliseconds fetch_time{10000};  ///< for one item, from its name to its last byte
  int threads = 4;
  size_t max_waiting = 64;  ///< requests whose media are still to be fetched
};

/// Fetches the media that requests name: from listed hosts over HTTP, and from folders. A host is
/// resolved once, and a connection is made to an address only when that very address is public;
/// redirects are not followed. Thread-safe.
class MediaSource {
 public:
  using Allow = bool (*)(const sockaddr& address);
  using Done = std::function<void(Result<std::vector<std::string>>)>;

  /// kInvalidArgument for a folder that is none. `allow` is another than is_public_address in
  /// tests.
  static Result<std::unique_ptr<MediaSource>> make(MediaSources sources,
                                                   Allow allow = is_public_address);
  /// What is being fetched is given up; what waits ends with an error.
  ~MediaSource();
  MediaSource(const MediaSource&) = delete;
  MediaSource& operator=(const MediaSource&) = delete;

  /// Whether media may be named so at all; nothing is asked of anybody. kInvalidArgument says why
  /// not, kPermissionDenied that host or folder is not listed.
  Status check(const std::string& name) const;
  /// Fetches what check() takes, one after the other, and calls `done` with the bytes of each, in
  /// order, on a thread of its own. Errors begin with the place in `labels` of what failed.
  /// kResourceExhausted when too many wait; `done` is not called then.
  Status fetch(std::vector<std::string> names, std::vector<std::string> labels, Done done);

 private:
  struct Job {
    std::vector<std::string> names;
    std::vector<std::string> labels;
    Done done;
  };
  MediaSource(MediaSources sources, Allow allow);
  void work();
  Result<std::vector<std::string>> fetch_all(const Job& job) const;
  Result<std::string> fetch_one(const std::string& name, uint64_t max_bytes) const;
  Result<std::string> read_local(const std::string& name, uint64_t max_bytes) const;

  const MediaSources sources_;
  const Allow allow_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace triptych
