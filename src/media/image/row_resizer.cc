#include "media/image/row_resizer.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"

namespace triptych {

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
      horizontal_(make_axis_weights(shape.in_width, shape.out_width, shape.window.left,
                                    shape.window.width, shape.filter)),
      vertical_(make_axis_weights(shape.in_height, shape.out_height, shape.window.top,
                                  shape.window.height, shape.filter)),
      first_row_(vertical_.first_in()),
      end_row_(vertical_.end_in()),
      plane_stride_(shape.window.width),
      stride_(round_up(3 * plane_stride_, kRowPadding)),
      middle_(std::make_unique_for_overwrite<uint8_t[]>(
          static_cast<size_t>((end_row_ - first_row_) * stride_ + kRowPadding))) {}

void RowResizer::put_rows(int64_t y, int64_t n_rows, const ConstPlanarRow* rows) {
  const int64_t begin = std::max(y, first_row_);
  const int64_t end = std::min(y + n_rows, end_row_);
  if (begin >= end) return;
  std::array<PlanarRow, kRowsAtOnce> out;
  for (int64_t row = begin; row < end; ++row) {
    uint8_t* at = middle_.get() + (row - first_row_) * stride_;
    out[static_cast<size_t>(row - begin)] = {at, at + plane_stride_, at + 2 * plane_stride_};
  }
  const ConstPlanarRow* in = rows + (begin - y);
  if (!horizontal_.identity && filter_ != ResampleFilter::kNearest) {
    horizontal_rows(in, end - begin, horizontal_, out.data());
    return;
  }
  for (int64_t r = 0; r < end - begin; ++r) {
    for (size_t c = 0; c < 3; ++c) {
      const uint8_t* from = in[r][c];
      uint8_t* to = out[static_cast<size_t>(r)][c];
      if (horizontal_.identity) {
        std::memcpy(to, from + window_.left, static_cast<size_t>(window_.width));
      } else {
        for (int64_t i = 0; i < window_.width; ++i) {
          to[i] = from[horizontal_.start[static_cast<size_t>(i)]];
        }
      }
    }
  }
}

ConstPlanarRow RowResizer::output_row(int64_t y, uint8_t* scratch) const {
  const auto index = static_cast<size_t>(y);
  const uint8_t* rows = middle(vertical_.start[index]);
  if (!vertical_.identity && filter_ != ResampleFilter::kNearest) {
    vertical_row(rows, stride_, vertical_.weights.data() + y * vertical_.stride,
                 vertical_.count[index], 3 * plane_stride_, scratch);
    rows = scratch;
  }
  return {rows, rows + plane_stride_, rows + 2 * plane_stride_};
}

std::unique_ptr<uint8_t[]> RowResizer::output_scratch() const {
  return std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(stride_ + kRowPadding));
}

}  // namespace triptych
