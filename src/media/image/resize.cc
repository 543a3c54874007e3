#include "media/image/resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "media/image/row_resizer.h"

namespace triptych {
namespace {

Status check_resize(const ImageView& image, int64_t width, int64_t height,
                    const ResizeWindow& window) {
  if (image.width < 1 || image.height < 1 || width < 1 || height < 1) {
    return invalid_argument(fmt::format("resize {} x {} to {} x {}: a side is below 1", image.width,
                                        image.height, width, height));
  }
  if (window.left < 0 || window.top < 0 || window.width < 1 || window.height < 1 ||
      window.left + window.width > width || window.top + window.height > height) {
    return invalid_argument(fmt::format("resize window {} x {} at ({}, {}) is not within {} x {}",
                                        window.width, window.height, window.left, window.top, width,
                                        height));
  }
  return Status::ok();
}

}  // namespace

Result<Image> resize_image(const ImageView& image, int64_t width, int64_t height,
                           ResampleFilter filter, ThreadPool& pool) {
  return resize_image_window(image, width, height, {0, 0, width, height}, filter, pool);
}

Result<Image> resize_image_window(const ImageView& image, int64_t width, int64_t height,
                                  const ResizeWindow& window, ResampleFilter filter,
                                  ThreadPool& pool) {
  TRIPTYCH_RETURN_IF_ERROR(check_resize(image, width, height, window));
  RowResizer resizer({image.width, image.height, width, height, window, filter});
  const int64_t n_rows = resizer.end_row() - resizer.first_row();
  pool.parallel_for(ceil_div(n_rows, kRowsAtOnce), 4, [&](int64_t begin, int64_t end) {
    PlanarRows scratch(kRowsAtOnce, image.width);
    std::array<ConstPlanarRow, kRowsAtOnce> rows;
    for (int64_t block = begin; block < end; ++block) {
      const int64_t y = resizer.first_row() + block * kRowsAtOnce;
      const int64_t n = std::min(kRowsAtOnce, resizer.end_row() - y);
      for (int64_t r = 0; r < n; ++r) {
        split_channels(image.row(y + r), image.width, scratch.row(r));
        rows[static_cast<size_t>(r)] = std::as_const(scratch).row(r);
      }
      resizer.put_rows(y, n, rows.data());
    }
  });
  Image out(window.width, window.height);
  pool.parallel_for(window.height, 8, [&](int64_t begin, int64_t end) {
    const auto scratch = resizer.output_scratch();
    for (int64_t y = begin; y < end; ++y) {
      join_channels(resizer.output_row(y, scratch.get()), window.width, out.row(y));
    }
  });
  return out;
}

}  // namespace triptych
