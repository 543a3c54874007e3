#include "core/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/checked.h"

namespace triptych {

Shape::Shape(std::initializer_list<int64_t> dims) {
  for (int64_t d : dims) push_back(d);
}

void Shape::push_back(int64_t dim) {
  if (rank_ < kMaxRank) dims_[static_cast<size_t>(rank_++)] = dim;
}

int64_t Shape::n_elements() const {
  int64_t n = 1;
  for (int i = 0; i < rank_; ++i) n *= dims_[static_cast<size_t>(i)];
  return n;
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ &&
         std::equal(dims_.begin(), dims_.begin() + rank_, other.dims_.begin());
}

std::string Shape::to_string() const {
  std::string out = "[";
  for (int i = 0; i < rank_; ++i) {
    out += fmt::format("{}{}", i > 0 ? ", " : "", dims_[static_cast<size_t>(i)]);
  }
  return out + "]";
}

View View::dense(void* data, DType dtype, const Shape& shape) {
  View v{data, dtype, shape, {}};
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    v.strides[static_cast<size_t>(i)] = stride;
    stride *= shape[i];
  }
  return v;
}

bool View::is_dense() const {
  if (shape.n_elements() == 0) return true;
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    // Along an axis of one element nothing is ever stepped over.
    if (shape[i] != 1 && strides[static_cast<size_t>(i)] != stride) return false;
    stride *= shape[i];
  }
  return true;
}

View View::rows(int64_t begin, int64_t n) const {
  View out = *this;
  out.data = static_cast<std::byte*>(data) + begin * strides[0] * dtype_bytes(dtype);
  Shape s{n};
  for (int i = 1; i < shape.rank(); ++i) s.push_back(shape[i]);
  out.shape = s;
  return out;
}

namespace {

/// Bytes of a dense tensor; negative sizes and products beyond int64 are refused.
Result<size_t> dense_bytes(DType dtype, const Shape& shape) {
  std::optional<uint64_t> n = static_cast<uint64_t>(dtype_bytes(dtype));
  for (int i = 0; i < shape.rank() && n; ++i) {
    if (shape[i] < 0) {
      return internal_error(fmt::format("tensor of shape {}: negative size", shape.to_string()));
    }
    n = checked_mul(*n, static_cast<uint64_t>(shape[i]));
  }
  if (!n || *n > static_cast<uint64_t>(INT64_MAX)) {
    return resource_exhausted(
        fmt::format("tensor of shape {}: more bytes than can be counted", shape.to_string()));
  }
  return static_cast<size_t>(*n);
}

}  // namespace

Result<Tensor> Tensor::allocate(DType dtype, const Shape& shape, bool huge_pages) {
  Tensor out;
  TRIPTYCH_ASSIGN_OR_RETURN(const size_t n_bytes, dense_bytes(dtype, shape));
  TRIPTYCH_ASSIGN_OR_RETURN(out.buffer_, PageBuffer::allocate(n_bytes, huge_pages));
  out.view_ = View::dense(out.buffer_.data(), dtype, shape);
  return out;
}

Result<Arena> Arena::create(size_t capacity_bytes, bool huge_pages) {
  Arena out;
  TRIPTYCH_ASSIGN_OR_RETURN(out.buffer_, PageBuffer::allocate(capacity_bytes, huge_pages));
  return out;
}

Result<void*> Arena::allocate_bytes(size_t n_bytes) {
  const auto rounded = checked_add(n_bytes, 63);
  if (!rounded || (*rounded & ~uint64_t{63}) > capacity() - used_) {
    return resource_exhausted(fmt::format("step workspace: {} bytes asked, {} of {} left", n_bytes,
                                          capacity() - used_, capacity()));
  }
  void* p = buffer_.data() + used_;
  used_ += *rounded & ~uint64_t{63};
  high_water_ = std::max(high_water_, used_);
  return p;
}

Result<View> Arena::allocate(DType dtype, const Shape& shape) {
  TRIPTYCH_ASSIGN_OR_RETURN(const size_t n_bytes, dense_bytes(dtype, shape));
  TRIPTYCH_ASSIGN_OR_RETURN(void* data, allocate_bytes(n_bytes));
  return View::dense(data, dtype, shape);
}

}  // namespace triptych
