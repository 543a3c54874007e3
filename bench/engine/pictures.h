#pragma once

#include <cstdint>
#include <string>

#include "request/request.h"

namespace triptych::bench {

/// What a PNG file says, its scanlines packed as the bit depth has it.
struct PngParts {
  int64_t width = 0;
  int64_t height = 0;
  int bit_depth = 8;
  int color_type = 2;        ///< 0 gray, 2 RGB, 3 palette, 6 RGBA
  std::string palette;       ///< PLTE, 3 bytes an entry; none when empty
  std::string transparency;  ///< tRNS; none when empty
  std::string rows;          ///< height x bytes of a row
};
/// A valid file, stored without compression.
std::string png_bytes(const PngParts& parts);

/// A picture of coloured rectangles on a ground, its own for each seed: a palette PNG of 4 bits.
MediaItem synthetic_picture(uint32_t seed, int64_t width, int64_t height);

}  // namespace triptych::bench
