#include "base/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

namespace triptych {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

/// Value in bytes of a "Name:  123 kB" line of a /proc file, 0 when it is not there.
uint64_t proc_kilobytes(const char* file, std::string_view name) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    if (line.compare(0, name.size(), name) != 0) continue;
    std::istringstream rest(line.substr(name.size()));
    uint64_t kilobytes = 0;
    rest >> kilobytes;
    return kilobytes << 10;
  }
  return 0;
}

}  // namespace

PageBuffer::~PageBuffer() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

PageBuffer::PageBuffer(PageBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

PageBuffer& PageBuffer::operator=(PageBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Result<PageBuffer> PageBuffer::allocate(size_t n_bytes, bool huge) {
  PageBuffer out;
  if (n_bytes == 0) return out;
  if (n_bytes > SIZE_MAX / 2) {
    return resource_exhausted(fmt::format("cannot allocate {} bytes", n_bytes));
  }
  // mmap aligns to small pages only: map a huge page more and give the ends back.
  const size_t size = (n_bytes + 4095) / 4096 * 4096;
  const size_t padded = size + kHugePage;
  void* raw = ::mmap(nullptr, padded, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) {
    return resource_exhausted(fmt::format("the system refused {} MiB of memory", n_bytes >> 20));
  }
  auto* base = static_cast<std::byte*>(raw);
  const size_t skip = (kHugePage - reinterpret_cast<uintptr_t>(base) % kHugePage) % kHugePage;
  if (skip > 0) ::munmap(base, skip);
  const size_t tail = padded - skip - size;
  if (tail > 0) ::munmap(base + skip + size, tail);
  out.data_ = base + skip;
  out.size_ = size;
  if (huge && size >= kHugePage) ::madvise(out.data_, size, MADV_HUGEPAGE);
  return out;
}

std::string transparent_huge_page_mode() {
  std::ifstream in("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string text;
  std::getline(in, text);
  const size_t open = text.find('[');
  const size_t close = text.find(']');
  if (open == std::string::npos || close == std::string::npos) return "unavailable";
  return text.substr(open + 1, close - open - 1);
}

uint64_t resident_bytes() { return proc_kilobytes("/proc/self/status", "VmRSS:"); }
uint64_t peak_resident_bytes() { return proc_kilobytes("/proc/self/status", "VmHWM:"); }
uint64_t total_memory_bytes() { return proc_kilobytes("/proc/meminfo", "MemTotal:"); }
uint64_t available_memory_bytes() { return proc_kilobytes("/proc/meminfo", "MemAvailable:"); }

}  // namespace triptych
