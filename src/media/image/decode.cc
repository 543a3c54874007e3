#include "media/image/decode.h"

#include <fmt/format.h>

#include <new>

#include "media/image/decoders.h"
#include "media/image/exif.h"
#include "media/image/orient.h"

namespace triptych {
namespace {

Result<Image> decode_stored(std::span<const std::byte> bytes, const ImageHeader& header,
                            const DecodeOptions& options) {
  switch (header.format) {
    case ImageFormat::kJpeg:
      return decode_jpeg(bytes, header);
    case ImageFormat::kPng:
      return decode_png(bytes, header, options);
    case ImageFormat::kWebp:
      return decode_webp(bytes, header, options);
    case ImageFormat::kGif:
      return decode_gif(bytes, header, options);
    case ImageFormat::kBmp:
      return decode_bmp(bytes, header, options);
  }
  return internal_error("image format without a decoder");
}

}  // namespace

StoredSize stored_size(const ImageHeader& header) {
  if (orientation_swaps_sides(header.orientation)) return {header.height, header.width};
  return {header.width, header.height};
}

Result<Image> decode_image(std::span<const std::byte> bytes, const DecodeOptions& options) {
  TRIPTYCH_ASSIGN_OR_RETURN(const ImageHeader header, probe_image(bytes, options.limits));
  try {
    TRIPTYCH_ASSIGN_OR_RETURN(Image stored, decode_stored(bytes, header, options));
    return apply_orientation(std::move(stored), header.orientation);
  } catch (const std::bad_alloc&) {
    return resource_exhausted(fmt::format("{}: no memory to decode {} x {} pixels ({} bytes)",
                                          image_format_name(header.format), header.width,
                                          header.height, header.decoded_bytes));
  }
}

}  // namespace triptych
