#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "media/image/decode.h"

namespace triptych {

/// One decoder a format: the stored pixels, not yet turned upright, of exactly the sides that
/// `header` (from probe_image) names; a library that reads other sides is an error.
Result<Image> decode_jpeg(std::span<const std::byte> bytes, const ImageHeader& header);
Result<Image> decode_png(std::span<const std::byte> bytes, const ImageHeader& header,
                         const DecodeOptions& options);
Result<Image> decode_webp(std::span<const std::byte> bytes, const ImageHeader& header,
                          const DecodeOptions& options);
Result<Image> decode_gif(std::span<const std::byte> bytes, const ImageHeader& header,
                         const DecodeOptions& options);
Result<Image> decode_bmp(std::span<const std::byte> bytes, const ImageHeader& header,
                         const DecodeOptions& options);

/// Stored sides of a header whose sides are upright.
struct StoredSize {
  int64_t width;
  int64_t height;
};
StoredSize stored_size(const ImageHeader& header);

}  // namespace triptych
