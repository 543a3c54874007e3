#include "media/image/probe.h"

#include <fmt/format.h>

#include <utility>

#include "media/image/exif.h"
#include "media/image/header_parsers.h"
#include "media/image/image_format.h"

namespace triptych {
namespace {

Result<ImageHeader> parse_header(ImageFormat format, std::span<const std::byte> bytes) {
  switch (format) {
    case ImageFormat::kJpeg:
      return parse_jpeg_header(bytes);
    case ImageFormat::kPng:
      return parse_png_header(bytes);
    case ImageFormat::kWebp:
      return parse_webp_header(bytes);
    case ImageFormat::kGif:
      return parse_gif_header(bytes);
    case ImageFormat::kBmp:
      return parse_bmp_header(bytes);
  }
  return internal_error("image format without a header parser");
}

Status refuse_format(std::span<const std::byte> bytes) {
  if (bytes.empty()) return invalid_argument("the picture is empty (0 bytes)");
  const std::string_view name = name_refused_format(bytes);
  constexpr std::string_view kAdvice = "send JPEG, PNG, WebP, GIF or BMP";
  if (name.empty()) {
    return unsupported(
        fmt::format("not a picture in a known format ({} bytes); {}", bytes.size(), kAdvice));
  }
  return unsupported(fmt::format("this is {}, which is not supported; {}", name, kAdvice));
}

Status check_limits(const ImageHeader& header, const ImageLimits& limits) {
  const auto name = image_format_name(header.format);
  if (header.width < 1 || header.height < 1) {
    return invalid_argument(
        fmt::format("{}: a side is zero ({} x {})", name, header.width, header.height));
  }
  if (header.width > limits.max_side || header.height > limits.max_side) {
    return out_of_range(fmt::format("{}: {} x {} has a side over the limit of {}", name,
                                    header.width, header.height, limits.max_side));
  }
  if (header.width * header.height > limits.max_pixels) {
    return out_of_range(fmt::format("{}: {} x {} = {} pixels is over the limit of {}", name,
                                    header.width, header.height, header.width * header.height,
                                    limits.max_pixels));
  }
  return Status::ok();
}

}  // namespace

Status cut_off(ImageFormat format, std::string_view part, uint64_t at_byte) {
  return data_loss(
      fmt::format("{}: {} is cut off at byte {}", image_format_name(format), part, at_byte));
}

Result<ImageHeader> probe_image(std::span<const std::byte> bytes, const ImageLimits& limits) {
  const auto format = sniff_image_format(bytes);
  if (!format) return refuse_format(bytes);
  if (static_cast<uint64_t>(limits.max_file_bytes) < bytes.size()) {
    return out_of_range(fmt::format("{}: {} bytes is over the limit of {}",
                                    image_format_name(*format), bytes.size(),
                                    limits.max_file_bytes));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(ImageHeader header, parse_header(*format, bytes));
  TRIPTYCH_RETURN_IF_ERROR(check_limits(header, limits));
  const int64_t output_bytes = header.width * header.height * 3;
  // Turning a picture needs the stored and the upright pixels at once.
  header.decoded_bytes += header.orientation == 1 ? output_bytes : 2 * output_bytes;
  if (orientation_swaps_sides(header.orientation)) std::swap(header.width, header.height);
  return header;
}

}  // namespace triptych
