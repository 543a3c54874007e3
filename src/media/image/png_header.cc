#include <fmt/format.h>

#include "media/image/byte_reader.h"
#include "media/image/exif.h"
#include "media/image/header_parsers.h"

namespace triptych {
namespace {

using std::string_view_literals::operator""sv;

/// Samples a pixel of a PNG colour type, or 0 for a type that does not exist.
int channels_of(uint32_t color_type) {
  switch (color_type) {
    case 0:
      return 1;
    case 2:
    case 3:  // palette entries are RGB
      return 3;
    case 4:
      return 2;
    case 6:
      return 4;
    default:
      return 0;
  }
}

bool depth_fits(uint32_t color_type, uint32_t depth) {
  if (depth == 8) return true;
  if (depth == 16) return color_type != 3;
  return (depth == 1 || depth == 2 || depth == 4) && (color_type == 0 || color_type == 3);
}

/// IHDR is the first chunk: length, type, width, height, depth, colour type, 3 method bytes.
Status parse_ihdr(const ByteReader& reader, ImageHeader* header) {
  if (!reader.has(8, 25)) return cut_off(ImageFormat::kPng, "IHDR chunk", reader.size());
  if (reader.starts_with(12, "CgBI"sv)) {
    return unsupported("PNG: Apple's CgBI variant is not supported; send a standard PNG");
  }
  if (!reader.starts_with(12, "IHDR"sv) || reader.be32(8) != 13) {
    return data_loss("PNG: the first chunk (byte 8) is not IHDR");
  }
  const uint32_t color_type = reader.u8(25);
  header->width = reader.be32(16);
  header->height = reader.be32(20);
  header->bit_depth = reader.u8(24);
  header->channels = channels_of(color_type);
  header->palette = color_type == 3;
  header->progressive = reader.u8(28) == 1;
  if (header->channels == 0 || !depth_fits(color_type, reader.u8(24))) {
    return data_loss(fmt::format("PNG: colour type {} with {} bits (byte 24) does not exist",
                                 color_type, header->bit_depth));
  }
  return Status::ok();
}

}  // namespace

Result<ImageHeader> parse_png_header(std::span<const std::byte> bytes) {
  const ByteReader reader(bytes);
  ImageHeader header;
  header.format = ImageFormat::kPng;
  TRIPTYCH_RETURN_IF_ERROR(parse_ihdr(reader, &header));
  bool have_data = false;
  bool have_transparency = false;
  // eXIf may stand behind the data, so chunks are hopped over to the end; a chunk that reaches past
  // the end is the decoder's to report.
  for (uint64_t at = 33; reader.has(at, 12);) {
    const uint64_t length = reader.be32(at);
    if (reader.starts_with(at + 4, "IDAT"sv)) {
      have_data = true;
    } else if (reader.starts_with(at + 4, "tRNS"sv)) {
      have_transparency = have_transparency || !have_data;
    } else if (reader.starts_with(at + 4, "acTL"sv)) {
      header.animated = header.animated || !have_data;
    } else if (reader.starts_with(at + 4, "eXIf"sv) && reader.has(at + 8, length)) {
      header.orientation = exif_orientation(reader.slice(at + 8, length));
    } else if (reader.starts_with(at + 4, "IEND"sv)) {
      break;
    }
    at += 12 + length;
  }
  if (!have_data) return cut_off(ImageFormat::kPng, "file (no IDAT chunk)", reader.size());
  if (have_transparency && header.channels % 2 == 1) header.channels += 1;
  if (header.width > 0x7FFFFFFF || header.height > 0x7FFFFFFF) {
    return data_loss("PNG: a side over 2^31 - 1 (byte 16)");
  }
  // Passes of an interlaced picture are merged in a buffer of their own.
  const int64_t pixel_bytes = header.channels % 2 == 0 ? 4 : 3;
  header.decoded_bytes = header.width * pixel_bytes;
  if (header.progressive && header.width <= 1 << 20 && header.height <= 1 << 20) {
    header.decoded_bytes *= header.height;
  }
  return header;
}

}  // namespace triptych
