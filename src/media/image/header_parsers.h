#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "media/image/probe.h"

namespace triptych {

/// One parser a format: bytes to header. They fill stored sides in width and height, the
/// orientation beside it, and in decoded_bytes what decoding takes besides the output; probe_image
/// checks the limits and turns the sides. They read headers and hop over data; none allocates by
/// what it reads.
Result<ImageHeader> parse_jpeg_header(std::span<const std::byte> bytes);
Result<ImageHeader> parse_png_header(std::span<const std::byte> bytes);
Result<ImageHeader> parse_webp_header(std::span<const std::byte> bytes);
Result<ImageHeader> parse_gif_header(std::span<const std::byte> bytes);
Result<ImageHeader> parse_bmp_header(std::span<const std::byte> bytes);

/// kDataLoss "<FORMAT>: <part> is cut off at byte N".
Status cut_off(ImageFormat format, std::string_view part, uint64_t at_byte);

}  // namespace triptych
