#include "media/sandbox/memory_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace triptych::sandbox {
namespace {

Status no_memory(uint64_t n_bytes) {
  return resource_exhausted(fmt::format("no memory to hand {} bytes to a picture's decoder: {}",
                                        n_bytes, std::strerror(errno)));
}

}  // namespace

int write_whole(int fd, std::span<const std::byte> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        ::pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    done += static_cast<size_t>(n);
  }
  return 0;
}

Result<MemoryFile> MemoryFile::filled(std::span<const std::byte> bytes) {
  MemoryFile out(Descriptor(::memfd_create("encoded picture", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
  if (!out.file_.is_open() || write_whole(out.fd(), bytes) != 0 ||
      ::fcntl(out.fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) !=
          0) {
    return no_memory(bytes.size());
  }
  return out;
}

Result<MemoryFile> MemoryFile::zeros(uint64_t n_bytes) {
  MemoryFile out(Descriptor(::memfd_create("pixel values", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
  if (!out.file_.is_open() || ::ftruncate(out.fd(), static_cast<off_t>(n_bytes)) != 0 ||
      ::fcntl(out.fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return no_memory(n_bytes);
  }
  return out;
}

Status MemoryFile::read(std::span<std::byte> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = ::pread(fd(), out.data() + done, out.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return internal_error(
          fmt::format("the pixels of a picture end at byte {} of {}", done, out.size()));
    }
    done += static_cast<size_t>(n);
  }
  return Status::ok();
}

}  // namespace triptych::sandbox
