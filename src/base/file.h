#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace triptych {

/// Whole file as bytes. kNotFound, kPermissionDenied or kOutOfRange (larger than `max_bytes`),
/// each naming the path.
Result<std::string> read_file(const std::string& path, uint64_t max_bytes = uint64_t{1} << 30);

/// Writes a file whole; the error names the path.
Status write_file(const std::string& path, std::string_view bytes);

bool file_exists(const std::string& path);
bool directory_exists(const std::string& path);

/// A read-only memory map of a file. The pages stay the kernel's: `release` hands back those that
/// have been copied out, so that a loader's resident memory does not hold the file twice.
class MappedFile {
 public:
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  /// Drops the resident pages that lie wholly within [offset, offset + n); they are read again
  /// from the file when touched.
  void release(size_t offset, size_t n) const;

 private:
  MappedFile(std::string path, const std::byte* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}
  std::string path_;
  const std::byte* data_;
  size_t size_;
};

/// The lines of a text, without their ends; a line end that is the last byte begins no other line.
std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace triptych
