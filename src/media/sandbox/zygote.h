#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>

#include "base/status.h"
#include "media/sandbox/channel.h"
#include "media/sandbox/worker.h"

namespace triptych::sandbox {

/// A process forked while the program was small and had one thread. All it does is fork workers,
/// which takes a millisecond however much the program has grown since, and end them. It never sees
/// a byte of a picture. It ends with the program, and its workers with it.
class Zygote {
 public:
  /// To be called before the program has threads.
  static Result<std::unique_ptr<Zygote>> start(PictureWork work);
  /// Ends it and all workers, and waits for that.
  ~Zygote();
  Zygote(const Zygote&) = delete;
  Zygote& operator=(const Zygote&) = delete;

  struct Child {
    pid_t pid = 0;
    Descriptor socket;  ///< its hello comes first
  };
  /// A new worker. Until end() its process id is not given to another process.
  Result<Child> spawn();
  /// Kills a worker, unless it is dead already, and waits for its end; gives its wait status.
  Result<int> end(pid_t worker);

 private:
  Zygote(pid_t pid, Descriptor socket) : pid_(pid), socket_(std::move(socket)) {}

  std::mutex mutex_;  // of one order and its answer
  pid_t pid_;
  Descriptor socket_;
};

/// What Zygote::end() found out, for the log: "signal 11 (Segmentation fault)".
std::string death_of(const Result<int>& wait_status);

}  // namespace triptych::sandbox
