#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace triptych {
namespace {

// Without O_NONBLOCK, opening a named pipe waits for a writer before we can see that it is none
// of the files we read.
constexpr int kOpenToRead = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

Status errno_status(const std::string& path, std::string_view what) {
  const int e = errno;
  const std::string message = fmt::format("{}: {}: {}", path, what, std::strerror(e));
  switch (e) {
    case ENOENT:
    case ENOTDIR:
      return not_found(message);
    case EACCES:
    case EPERM:
      return {StatusCode::kPermissionDenied, message};
    case ENOSPC:
    case ENOMEM:
      return resource_exhausted(message);
    default:
      return {StatusCode::kInvalidArgument, message};
  }
}

/// Closes a descriptor at the end of a scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Result<size_t> regular_file_size(const Descriptor& fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return errno_status(path, "cannot stat");
  if (S_ISDIR(info.st_mode)) return invalid_argument(path + ": is a directory, expected a file");
  if (!S_ISREG(info.st_mode)) return invalid_argument(path + ": is not a regular file");
  return static_cast<size_t>(info.st_size);
}

}  // namespace

Result<std::string> read_file(const std::string& path, uint64_t max_bytes) {
  const Descriptor fd(::open(path.c_str(), kOpenToRead));
  if (fd.get() < 0) return errno_status(path, "cannot open");
  TRIPTYCH_ASSIGN_OR_RETURN(const size_t size, regular_file_size(fd, path));
  if (size > max_bytes) {
    return out_of_range(
        fmt::format("{}: file of {} bytes is over the limit of {}", path, size, max_bytes));
  }
  std::string out(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::read(fd.get(), out.data() + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_status(path, "cannot read");
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  out.resize(done);
  return out;
}

Status write_file(const std::string& path, std::string_view bytes) {
  const Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (fd.get() < 0) return errno_status(path, "cannot create");
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_status(path, "cannot write");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return Status::ok();
}

bool file_exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool directory_exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), kOpenToRead));
  if (fd.get() < 0) return errno_status(path, "cannot open");
  TRIPTYCH_ASSIGN_OR_RETURN(const size_t size, regular_file_size(fd, path));
  if (size == 0) return data_loss(path + ": the file is empty");
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) return errno_status(path, "cannot map");
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, static_cast<const std::byte*>(data), size));
}

MappedFile::~MappedFile() { ::munmap(const_cast<std::byte*>(data_), size_); }

void MappedFile::release(size_t offset, size_t n) const {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t begin = (offset + page - 1) / page * page;
  const size_t end = (offset + n) / page * page;
  if (begin < end && end <= size_) {
    ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
  }
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace triptych
