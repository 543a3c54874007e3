#pragma once

#include <array>
#include <cstdint>

namespace triptych {

using Rgb = std::array<uint8_t, 3>;

/// Composites `n` RGBA pixels (alpha not premultiplied) over an opaque background into RGB, with
/// the rounding of Pillow's Image.alpha_composite. What lies under alpha 0 never shows.
void composite_over(const uint8_t* rgba, int64_t n, const Rgb& background, uint8_t* rgb);

}  // namespace triptych
