#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/status.h"
#include "media/sandbox/memory_file.h"
#include "media/sandbox/picture_job.h"
#include "media/sandbox/zygote.h"

namespace triptych::sandbox {

/// A worker as the program sees it. One thread at a time has to do with it.
class WorkerProcess {
 public:
  /// Forks one and waits until it is confined.
  static Result<std::unique_ptr<WorkerProcess>> start(Zygote& zygote);

  pid_t pid() const { return pid_; }
  int socket() const { return socket_.get(); }
  /// 0 when it is behind a filter of system calls, else why not (WorkerHello).
  int filter_error() const { return filter_error_; }
  int64_t n_pictures() const { return n_pictures_; }
  /// Processor time that it has taken; nothing when it is dead.
  std::optional<double> cpu_ms() const;

  /// From now on it may map `n_bytes` more than it had before its first picture. kUnavailable when
  /// that cannot be set, as when it is dead.
  Status limit_memory(uint64_t n_bytes);

  /// Room for `n_bytes` of values, which the worker writes and the program reads. Making and
  /// freeing its pages would be most of what a picture costs, so it is kept for the next one.
  Result<const MemoryFile*> values(uint64_t n_bytes);
  /// Gives back a room that is too large to be kept.
  void tidy();

  enum class Outcome : uint8_t {
    kDone,     ///< `status` says how
    kTooSlow,  ///< it still computes, or hangs
    kBroken,   ///< it is dead, or says what no worker of ours says
  };
  struct Answer {
    Outcome outcome = Outcome::kBroken;
    Status status;
  };
  /// Hands it a picture. False when it died before it was asked.
  bool ask(const PictureJob& job, std::span<const int> files);
  /// Waits until the picture is done or has taken `limit_ms`: of processor time, so that a busy
  /// machine is not taken for a slow picture, and at most five times as long on the clock. A worker
  /// that does not even want a core gets no more than `limit_ms` on the clock.
  Answer answer(double limit_ms);

 private:
  WorkerProcess(pid_t pid, Descriptor socket) : pid_(pid), socket_(std::move(socket)) {}
  bool is_answered_within(double limit_ms) const;
  bool wants_a_core() const;

  pid_t pid_;
  Descriptor socket_;
  uint64_t base_bytes_ = 0;
  int filter_error_ = 0;
  int64_t n_pictures_ = 0;
  std::optional<MemoryFile> values_;
  uint64_t n_value_bytes_ = 0;
};

}  // namespace triptych::sandbox
