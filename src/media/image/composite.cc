#include "media/image/composite.h"

namespace triptych {
namespace {

/// round(value * alpha + background * (255 - alpha), / 255) as Pillow computes it over an opaque
/// background: 7 extra bits, then division by 255 through shifts.
inline uint8_t blend(uint32_t value, uint32_t background, uint32_t alpha) {
  constexpr uint32_t kBits = 7;
  const uint32_t sum =
      ((value * alpha + background * (255 - alpha)) << kBits) + (uint32_t{0x80} << kBits);
  return static_cast<uint8_t>((((sum >> 8) + sum) >> 8) >> kBits);
}

}  // namespace

void composite_over(const uint8_t* rgba, int64_t n, const Rgb& background, uint8_t* rgb) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t alpha = rgba[4 * i + 3];
    for (int c = 0; c < 3; ++c) {
      rgb[3 * i + c] =
          alpha == 255 ? rgba[4 * i + c] : blend(rgba[4 * i + c], background[c], alpha);
    }
  }
}

}  // namespace triptych
