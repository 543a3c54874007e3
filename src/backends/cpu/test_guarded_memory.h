#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>

#include "base/checked.h"

namespace triptych {

/// Memory that ends (up to the alignment asked for) at a page that cannot be touched, so that a
/// kernel that reads or writes beyond its operand crashes in any build.
class GuardedMemory {
 public:
  GuardedMemory(size_t n_bytes, int64_t alignment) {
    constexpr int64_t kPage = 4096;
    const int64_t used = round_up(static_cast<int64_t>(n_bytes), alignment);
    const int64_t body = round_up(used, kPage);
    size_ = static_cast<size_t>(body + kPage);
    void* raw = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(raw);
    ::mprotect(base_ + body, kPage, PROT_NONE);
    data_ = base_ + (body - used);
  }
  /// A copy of `values`.
  explicit GuardedMemory(std::span<const float> values) : GuardedMemory(values.size_bytes(), 4) {
    if (!values.empty()) std::memcpy(data_, values.data(), values.size_bytes());
  }
  ~GuardedMemory() { ::munmap(base_, size_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() { return data_; }
  float* f32() { return reinterpret_cast<float*>(data_); }

 private:
  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace triptych
