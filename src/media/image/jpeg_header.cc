#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "media/image/byte_reader.h"
#include "media/image/exif.h"
#include "media/image/header_parsers.h"

namespace triptych {
namespace {

using std::string_view_literals::operator""sv;

constexpr uint8_t kSoi = 0xD8;
constexpr uint8_t kEoi = 0xD9;
constexpr uint8_t kSos = 0xDA;
constexpr uint8_t kApp1 = 0xE1;

/// SOF markers are C0..CF without DHT (C4), JPG (C8) and DAC (CC).
bool is_frame_header(uint8_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

/// Markers that stand alone, without a length: TEM and RST0..7, and SOI.
bool is_standalone(uint8_t marker) {
  return marker == 0x01 || (marker >= 0xD0 && marker <= 0xD7) || marker == kSoi;
}

/// Coefficients of a multi-scan picture, which libjpeg holds whole: 2 bytes a sample, per component
/// rounded up to whole MCUs.
int64_t coefficient_bytes(const ByteReader& reader, uint64_t body, const ImageHeader& header) {
  const int n = header.channels;
  int64_t h_max = 1;
  int64_t v_max = 1;
  for (int c = 0; c < n; ++c) {
    const uint8_t factors = reader.u8(body + 7 + 3 * c);
    h_max = std::max<int64_t>(h_max, factors >> 4);
    v_max = std::max<int64_t>(v_max, factors & 15);
  }
  int64_t samples = 0;
  for (int c = 0; c < n; ++c) {
    const uint8_t factors = reader.u8(body + 7 + 3 * c);
    const int64_t width = round_up(ceil_div(header.width * (factors >> 4), h_max), 32);
    const int64_t height = round_up(ceil_div(header.height * (factors & 15), v_max), 32);
    samples += width * height;
  }
  return 2 * samples;
}

Status parse_frame_header(const ByteReader& reader, uint8_t marker, uint64_t at,
                          ImageHeader* header) {
  const uint64_t body = at + 4;  // after marker and length
  if (!reader.has(body, 6)) return cut_off(ImageFormat::kJpeg, "frame header", reader.size());
  const uint32_t kind = marker & 3;
  if (kind == 3) return unsupported("JPEG: lossless coding is not supported");
  if (marker > 0xC2 && marker != 0xC9 && marker != 0xCA) {
    return unsupported("JPEG: hierarchical coding is not supported");
  }
  header->bit_depth = reader.u8(body);
  if (header->bit_depth != 8) {
    return unsupported(
        fmt::format("JPEG: {} bits a sample; only 8 are supported", header->bit_depth));
  }
  header->height = reader.be16(body + 1);
  header->width = reader.be16(body + 3);
  header->channels = reader.u8(body + 5);
  if (header->channels != 1 && header->channels != 3 && header->channels != 4) {
    return unsupported(
        fmt::format("JPEG: {} components; 1, 3 and 4 are supported", header->channels));
  }
  if (!reader.has(body + 6, 3 * static_cast<uint64_t>(header->channels))) {
    return cut_off(ImageFormat::kJpeg, "frame header", reader.size());
  }
  header->progressive = kind == 2;
  if (header->progressive) header->decoded_bytes = coefficient_bytes(reader, body, *header);
  return Status::ok();
}

}  // namespace

Result<ImageHeader> parse_jpeg_header(std::span<const std::byte> bytes) {
  const ByteReader reader(bytes);
  ImageHeader header;
  header.format = ImageFormat::kJpeg;
  bool have_frame = false;
  bool have_exif = false;
  uint64_t at = 2;
  for (;;) {
    // Bytes that are no marker are skipped, as libjpeg does; so are fill bytes (FF FF).
    while (reader.has(at, 2) &&
           (reader.u8(at) != 0xFF || reader.u8(at + 1) == 0xFF || reader.u8(at + 1) == 0)) {
      ++at;
    }
    if (!reader.has(at, 2)) {
      return cut_off(ImageFormat::kJpeg, have_frame ? "header before the scan" : "header",
                     reader.size());
    }
    const uint8_t marker = reader.u8(at + 1);
    if (marker == kSos || marker == kEoi) break;
    if (is_standalone(marker)) {
      at += 2;
      continue;
    }
    const uint32_t length = reader.be16(at + 2);
    if (length < 2 || !reader.has(at + 2, length)) {
      return cut_off(ImageFormat::kJpeg, fmt::format("segment FF{:02X}", marker),
                     std::min<uint64_t>(at, reader.size()));
    }
    if (is_frame_header(marker) && !have_frame) {
      TRIPTYCH_RETURN_IF_ERROR(parse_frame_header(reader, marker, at, &header));
      have_frame = true;
    } else if (marker == kApp1 && !have_exif && reader.starts_with(at + 4, "Exif\0\0"sv)) {
      header.orientation = exif_orientation(reader.slice(at + 4, length - 2));
      have_exif = true;
    }
    at += 2 + length;
  }
  if (!have_frame) {
    return data_loss(fmt::format("JPEG: no frame header before the scan at byte {}", at));
  }
  return header;
}

}  // namespace triptych
