#include <fmt/format.h>

#include "media/image/byte_reader.h"
#include "media/image/exif.h"
#include "media/image/header_parsers.h"

namespace triptych {
namespace {

using std::string_view_literals::operator""sv;

constexpr uint8_t kFlagAnimation = 0x02;
constexpr uint8_t kFlagAlpha = 0x10;

/// Sides from a lossy bitstream (RFC 6386 section 9.1) at `at`.
Status parse_vp8(const ByteReader& reader, uint64_t at, ImageHeader* header) {
  if (!reader.has(at, 10)) return cut_off(ImageFormat::kWebp, "VP8 frame header", reader.size());
  if (!reader.starts_with(at + 3, "\x9D\x01\x2A"sv)) {
    return data_loss(fmt::format("WebP: no key frame at byte {}", at));
  }
  header->width = reader.le16(at + 6) & 0x3FFF;
  header->height = reader.le16(at + 8) & 0x3FFF;
  header->channels = 3;
  return Status::ok();
}

/// Sides from a lossless bitstream (WebP lossless specification, section 3) at `at`.
Status parse_vp8l(const ByteReader& reader, uint64_t at, ImageHeader* header) {
  if (!reader.has(at, 5)) return cut_off(ImageFormat::kWebp, "VP8L header", reader.size());
  if (reader.u8(at) != 0x2F) {
    return data_loss(fmt::format("WebP: no lossless signature at byte {}", at));
  }
  const uint32_t bits = reader.le32(at + 1);
  header->width = (bits & 0x3FFF) + 1;
  header->height = ((bits >> 14) & 0x3FFF) + 1;
  header->channels = (bits >> 28) & 1 ? 4 : 3;
  return Status::ok();
}

}  // namespace

Result<ImageHeader> parse_webp_header(std::span<const std::byte> bytes) {
  const ByteReader reader(bytes);
  ImageHeader header;
  header.format = ImageFormat::kWebp;
  const uint64_t first = 12;  // RIFF, size, WEBP
  if (!reader.has(first, 8)) return cut_off(ImageFormat::kWebp, "header", reader.size());
  if (reader.starts_with(first, "VP8 "sv)) {
    TRIPTYCH_RETURN_IF_ERROR(parse_vp8(reader, first + 8, &header));
  } else if (reader.starts_with(first, "VP8L"sv)) {
    TRIPTYCH_RETURN_IF_ERROR(parse_vp8l(reader, first + 8, &header));
  } else if (reader.starts_with(first, "VP8X"sv)) {
    if (!reader.has(first + 8, 10)) {
      return cut_off(ImageFormat::kWebp, "VP8X header", reader.size());
    }
    const uint8_t flags = reader.u8(first + 8);
    header.animated = (flags & kFlagAnimation) != 0;
    header.channels = (flags & kFlagAlpha) != 0 ? 4 : 3;
    header.width = int64_t{reader.le24(first + 12)} + 1;
    header.height = int64_t{reader.le24(first + 15)} + 1;
    // EXIF stands behind the picture: chunks have even sizes.
    for (uint64_t at = first; reader.has(at, 8);) {
      const uint64_t length = reader.le32(at + 4);
      if (reader.starts_with(at, "EXIF"sv)) {
        header.orientation = exif_orientation(reader.slice(at + 8, length));
        break;
      }
      at += 8 + length + (length & 1);
    }
  } else {
    return data_loss("WebP: the first chunk (byte 12) is not VP8, VP8L or VP8X");
  }
  // libwebp's working memory stays below one more copy of the canvas with alpha.
  if (header.width <= 1 << 14 && header.height <= 1 << 14) {
    header.decoded_bytes = header.width * header.height * 4 * 2;
  }
  return header;
}

}  // namespace triptych
