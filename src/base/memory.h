#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace triptych {

/// Anonymous memory for weights and caches, aligned to 2 MiB and, when asked for and the system
/// allows it, backed by transparent huge pages (fewer TLB misses when a decode step streams all
/// weights). Zero-filled; physical memory is taken when first touched. Move-only.
class PageBuffer {
 public:
  PageBuffer() = default;
  ~PageBuffer();
  PageBuffer(PageBuffer&& other) noexcept;
  PageBuffer& operator=(PageBuffer&& other) noexcept;

  /// kResourceExhausted when the system refuses.
  static Result<PageBuffer> allocate(size_t n_bytes, bool huge);

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// "always", "madvise" or "never" as the kernel is set, or "unavailable".
std::string transparent_huge_page_mode();

/// Resident memory of this process now and at its peak, in bytes (/proc/self/status).
uint64_t resident_bytes();
uint64_t peak_resident_bytes();
/// Physical memory of the machine, in bytes, and what is available to new work.
uint64_t total_memory_bytes();
uint64_t available_memory_bytes();

}  // namespace triptych
