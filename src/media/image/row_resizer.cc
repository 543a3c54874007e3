#include "media/image/row_resizer.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"

namespace triptych {
namespace {

/// When Pillow (13.0) resizes vertically first: bytes between the passes are rounded, so the order
/// shows in the last bit. Earlier versions always start horizontally.
bool starts_vertically(const ResizeShape& shape) {
  return shape.filter != ResampleFilter::kNearest && shape.in_width != shape.out_width &&
         shape.out_height < shape.in_height &&
         shape.in_height - shape.out_height > 2 * (shape.in_width - shape.out_width);
}

PlanarRow planes_at(uint8_t* row, int64_t plane_stride) {
  return {row, row + plane_stride, row + 2 * plane_stride};
}

}  // namespace

PlanarRows::PlanarRows(int64_t n_rows, int64_t width)
    : stride_(round_up(width + kRowPadding, kRowPadding)),
      bytes_(std::make_unique<uint8_t[]>(static_cast<size_t>(3 * n_rows * stride_))) {}

PlanarRow PlanarRows::row(int64_t i) {
  uint8_t* at = bytes_.get() + 3 * i * stride_;
  return {at, at + stride_, at + 2 * stride_};
}

ConstPlanarRow PlanarRows::row(int64_t i) const {
  const uint8_t* at = bytes_.get() + 3 * i * stride_;
  return {at, at + stride_, at + 2 * stride_};
}

RowResizer::RowResizer(const ResizeShape& shape)
    : window_(shape.window),
      filter_(shape.filter),
      vertical_first_(starts_vertically(shape)),
      horizontal_(make_axis_weights(shape.in_width, shape.out_width, shape.window.left,
                                    shape.window.width, shape.filter)),
      vertical_(make_axis_weights(shape.in_height, shape.out_height, shape.window.top,
                                  shape.window.height, shape.filter)),
      first_row_(vertical_.first_in()),
      end_row_(vertical_.end_in()),
      plane_stride_(vertical_first_ ? shape.in_width : shape.window.width),
      stride_(round_up(3 * plane_stride_, kRowPadding)),
      kept_(std::make_unique_for_overwrite<uint8_t[]>(
          static_cast<size_t>((end_row_ - first_row_) * stride_ + kRowPadding))) {}

void RowResizer::resize_width(const ConstPlanarRow* in, int64_t n_rows,
                              const PlanarRow* out) const {
  if (!horizontal_.identity && filter_ != ResampleFilter::kNearest) {
    horizontal_rows(in, n_rows, horizontal_, out);
    return;
  }
  for (int64_t r = 0; r < n_rows; ++r) {
    for (size_t c = 0; c < 3; ++c) {
      if (horizontal_.identity) {
        std::memcpy(out[r][c], in[r][c] + window_.left, static_cast<size_t>(window_.width));
        continue;
      }
      for (int64_t i = 0; i < window_.width; ++i) {
        out[r][c][i] = in[r][c][horizontal_.start[static_cast<size_t>(i)]];
      }
    }
  }
}

void RowResizer::put_rows(int64_t y, int64_t n_rows, const ConstPlanarRow* rows) {
  const int64_t begin = std::max(y, first_row_);
  const int64_t end = std::min(y + n_rows, end_row_);
  if (begin >= end) return;
  const ConstPlanarRow* in = rows + (begin - y);
  std::array<PlanarRow, kRowsAtOnce> out;
  for (int64_t r = 0; r < end - begin; ++r) {
    uint8_t* at = kept_.get() + (begin + r - first_row_) * stride_;
    out[static_cast<size_t>(r)] = planes_at(at, plane_stride_);
  }
  if (!vertical_first_) {
    resize_width(in, end - begin, out.data());
    return;
  }
  for (int64_t r = 0; r < end - begin; ++r) {
    for (size_t c = 0; c < 3; ++c) {
      std::memcpy(out[static_cast<size_t>(r)][c], in[r][c], static_cast<size_t>(plane_stride_));
    }
  }
}

ConstPlanarRow RowResizer::output_row(int64_t y, uint8_t* scratch) const {
  const auto index = static_cast<size_t>(y);
  const uint8_t* row = kept_.get() + (vertical_.start[index] - first_row_) * stride_;
  if (!vertical_.identity && filter_ != ResampleFilter::kNearest) {
    vertical_row(row, stride_, vertical_.weights.data() + y * vertical_.stride,
                 vertical_.count[index], 3 * plane_stride_, scratch);
    row = scratch;
  }
  const ConstPlanarRow planes = {row, row + plane_stride_, row + 2 * plane_stride_};
  if (!vertical_first_) return planes;
  const PlanarRow out = planes_at(scratch + stride_ + kRowPadding, window_.width);
  resize_width(&planes, 1, &out);
  return {out[0], out[1], out[2]};
}

std::unique_ptr<uint8_t[]> RowResizer::output_scratch() const {
  const int64_t n_bytes = stride_ + kRowPadding + (vertical_first_ ? 3 * window_.width : 0);
  return std::make_unique<uint8_t[]>(static_cast<size_t>(n_bytes));
}

}  // namespace triptych
