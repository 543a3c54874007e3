#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "media/sandbox/descriptor.h"

namespace triptych::sandbox {

/// Memory that another process can be handed as a descriptor. Its size is fixed by a seal that
/// nobody can take off.
class MemoryFile {
 public:
  /// Filled with `bytes`, which nobody can change any more.
  static Result<MemoryFile> filled(std::span<const std::byte> bytes);
  /// Of `n_bytes` zeros, to be written by whoever holds the descriptor.
  static Result<MemoryFile> zeros(uint64_t n_bytes);

  /// Copies the first bytes out. kInternal when there are fewer.
  Status read(std::span<std::byte> out) const;

  int fd() const { return file_.get(); }

 private:
  explicit MemoryFile(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

/// Writes all of `bytes` to the start of a file. 0, or an errno.
int write_whole(int fd, std::span<const std::byte> bytes);

}  // namespace triptych::sandbox
