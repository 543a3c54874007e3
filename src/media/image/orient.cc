#include "media/image/orient.h"

#include <algorithm>

#include "media/image/exif.h"

namespace triptych {
namespace {

/// Where upright pixel (0, 0) lies in the stored picture, and the steps in bytes from there for one
/// pixel to the right and one row down.
struct Walk {
  int64_t start;
  int64_t step_x;
  int64_t step_y;
};

Walk walk_of(const Image& stored, int orientation) {
  const int64_t right = 3;
  const int64_t down = stored.stride();
  const int64_t last_x = (stored.width() - 1) * right;
  const int64_t last_y = (stored.height() - 1) * down;
  switch (orientation) {
    case 2:
      return {last_x, -right, down};
    case 3:
      return {last_x + last_y, -right, -down};
    case 4:
      return {last_y, right, -down};
    case 5:
      return {0, down, right};
    case 6:
      return {last_y, -down, right};
    case 7:
      return {last_x + last_y, -down, -right};
    case 8:
      return {last_x, down, -right};
    default:
      return {0, right, down};
  }
}

}  // namespace

Image apply_orientation(Image image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  const bool swaps = orientation_swaps_sides(orientation);
  Image upright(swaps ? image.height() : image.width(), swaps ? image.width() : image.height());
  const Walk walk = walk_of(image, orientation);
  // Square tiles keep both the rows read and the rows written in the cache when sides are swapped.
  constexpr int64_t kTile = 64;
  for (int64_t y0 = 0; y0 < upright.height(); y0 += kTile) {
    const int64_t y1 = std::min(y0 + kTile, upright.height());
    for (int64_t x0 = 0; x0 < upright.width(); x0 += kTile) {
      const int64_t x1 = std::min(x0 + kTile, upright.width());
      for (int64_t y = y0; y < y1; ++y) {
        const uint8_t* in = image.data() + walk.start + y * walk.step_y + x0 * walk.step_x;
        uint8_t* out = upright.row(y) + x0 * 3;
        for (int64_t x = x0; x < x1; ++x, in += walk.step_x, out += 3) {
          out[0] = in[0];
          out[1] = in[1];
          out[2] = in[2];
        }
      }
    }
  }
  return upright;
}

}  // namespace triptych
