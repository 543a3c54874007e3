#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/thread_pool.h"
#include "media/image/image.h"

namespace triptych {

/// Filters by their Pillow ids, as `resample` in a preprocessor_config.json has them.
enum class ResampleFilter : uint8_t {
  kNearest = 0,
  kLanczos = 1,
  kBilinear = 2,
  kBicubic = 3,
  kBox = 4,
  kHamming = 5,
};

/// A part of the resized image: left, top, and its size. It must lie within the resized image.
struct ResizeWindow {
  int64_t left = 0;
  int64_t top = 0;
  int64_t width = 0;
  int64_t height = 0;
};

/// Resizes to [height, width, 3], equal byte for byte to Pillow's Image.resize on 8-bit RGB: two
/// passes, weights with 22 fractional bits, bytes between the passes, a pass skipped when its side
/// does not change. The horizontal pass comes first, save for pictures whose height loses more than
/// twice as many samples as their width: there the order is that of Pillow 13, and earlier versions
/// differ from it (and from this) by one level here and there. The same bytes at every SIMD level
/// and thread count. kInvalidArgument for a side below 1.
Result<Image> resize_image(const ImageView& image, int64_t width, int64_t height,
                           ResampleFilter filter, ThreadPool& pool);

/// The pixels of `window` alone of what resize_image would give; work and memory are bounded by the
/// window and not by the resized size.
Result<Image> resize_image_window(const ImageView& image, int64_t width, int64_t height,
                                  const ResizeWindow& window, ResampleFilter filter,
                                  ThreadPool& pool);

}  // namespace triptych
