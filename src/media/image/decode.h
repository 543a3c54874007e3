#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "media/image/image.h"
#include "media/image/probe.h"

namespace triptych {

/// How encoded pictures become RGB. Part of a picture's identity: two settings, two pictures.
struct DecodeOptions {
  ImageLimits limits;
  /// What transparent pixels are composited over.
  std::array<uint8_t, 3> background = {255, 255, 255};
};

/// Decodes a JPEG, PNG, WebP, GIF or BMP file to upright 8-bit RGB [height, width, 3].
///
/// EXIF orientation is applied; alpha is composited over `background`; gray and palette become RGB;
/// 16-bit samples become v / 257, rounded. Of an animation the first shown frame on the full canvas
/// is taken (of an APNG its default image). CMYK follows Adobe's inverted convention, as Pillow
/// assumes. ICC profiles and gAMA are ignored: stored samples pass unchanged, which is how Pillow
/// hands them to the processors that models were trained with.
///
/// Errors as probe_image, and kDataLoss for truncated or corrupt data, naming the part and the byte
/// where the decoder stood. A picture with missing data is an error, never a half-gray picture.
Result<Image> decode_image(std::span<const std::byte> bytes, const DecodeOptions& options = {});

}  // namespace triptych
