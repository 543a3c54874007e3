#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"

namespace triptych {

enum class ImageFormat : uint8_t { kJpeg, kPng, kWebp, kGif, kBmp };

/// "JPEG", "PNG", "WebP", "GIF", "BMP".
std::string_view image_format_name(ImageFormat format);

/// What a picture may be at most, checked against its header before a pixel is allocated. The
/// default takes a 9000x6000 photo (54 MP) and refuses a 30000x30000 bomb.
struct ImageLimits {
  int64_t max_pixels = int64_t{64} << 20;       ///< width x height
  int64_t max_side = 65535;                     ///< of either side
  int64_t max_file_bytes = int64_t{256} << 20;  ///< of the encoded picture
};

/// What the header of a picture says. Nothing is decoded to learn it.
struct ImageHeader {
  ImageFormat format = ImageFormat::kJpeg;
  int64_t width = 0;    ///< upright: after the EXIF orientation has been applied
  int64_t height = 0;   ///< upright
  int orientation = 1;  ///< EXIF 1..8; 5..8 swap the stored sides
  int channels = 0;     ///< stored: 1 gray, 2 gray + alpha, 3 RGB, 4 RGB + alpha or CMYK
  int bit_depth = 8;    ///< bits of a stored sample (of a palette index for palette pictures)
  bool palette = false;
  bool progressive = false;   ///< progressive JPEG or interlaced PNG
  bool animated = false;      ///< more than one frame; the first shown frame is what is decoded
  int64_t decoded_bytes = 0;  ///< upper estimate of the memory that decoding takes, output included
};

/// Reads the header of an encoded picture; the type comes from the bytes alone.
/// Errors: kInvalidArgument (empty, zero-sized side), kUnsupported (a format we do not decode,
/// named: HEIC, AVIF, TIFF, SVG, MP4, ...), kDataLoss (header cut or corrupt, with the byte),
/// kOutOfRange (over `limits`, with both numbers).
Result<ImageHeader> probe_image(std::span<const std::byte> bytes, const ImageLimits& limits = {});

}  // namespace triptych
