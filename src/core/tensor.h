#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/memory.h"
#include "base/status.h"
#include "core/dtype.h"

namespace triptych {

constexpr int kMaxRank = 6;

/// Sizes of a tensor's axes, outermost first.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
  /// Adds an axis at the end; more than kMaxRank is our bug and is dropped by readers beforehand.
  void push_back(int64_t dim);
  int64_t n_elements() const;
  bool operator==(const Shape& other) const;
  /// "[1, 576, 1024]"
  std::string to_string() const;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

/// Borrowed, possibly strided memory of a tensor. Strides count elements.
struct View {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;
  std::array<int64_t, kMaxRank> strides{};

  /// A dense row-major view.
  static View dense(void* data, DType dtype, const Shape& shape);

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  float* f32() const { return as<float>(); }
  bool is_dense() const;
  /// Rows [begin, begin + n) of the outermost axis.
  View rows(int64_t begin, int64_t n) const;
  int64_t n_bytes() const { return shape.n_elements() * dtype_bytes(dtype); }
};

/// Owns dense memory. Move-only; zero-filled when made.
class Tensor {
 public:
  Tensor() = default;
  static Result<Tensor> allocate(DType dtype, const Shape& shape, bool huge_pages = false);

  const View& view() const { return view_; }
  const Shape& shape() const { return view_.shape; }
  DType dtype() const { return view_.dtype; }
  float* f32() const { return view_.f32(); }
  int64_t n_bytes() const { return view_.n_bytes(); }

 private:
  PageBuffer buffer_;
  View view_;
};

/// Scratch memory of a step: a bump allocator over one buffer of fixed size. Allocation order is
/// release order (ArenaScope); nothing is ever allocated beyond the capacity planned at load.
class Arena {
 public:
  Arena() = default;
  static Result<Arena> create(size_t capacity_bytes, bool huge_pages = true);

  /// 64-byte aligned, contents undefined. kResourceExhausted names what was asked and what is left.
  Result<View> allocate(DType dtype, const Shape& shape);
  Result<void*> allocate_bytes(size_t n_bytes);

  size_t used() const { return used_; }
  size_t capacity() const { return buffer_.size(); }
  size_t high_water() const { return high_water_; }
  void rewind(size_t used) { used_ = used; }

 private:
  PageBuffer buffer_;
  size_t used_ = 0;
  size_t high_water_ = 0;
};

/// Gives back, at the end of a scope, what was allocated within it.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.used()) {}
  ~ArenaScope() { arena_.rewind(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  size_t mark_;
};

}  // namespace triptych
