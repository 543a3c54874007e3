#include <fmt/format.h>

#include <vector>

#include "media/image/bmp_header.h"
#include "media/image/byte_reader.h"
#include "media/image/composite.h"
#include "media/image/decoders.h"
#include "media/image/header_parsers.h"

namespace triptych {
namespace {

/// Row of palette indices (1, 4 or 8 bits, first pixel in the high bits); an index past the palette
/// is black.
void expand_indexed(const ByteReader& reader, const BmpInfo& info, uint64_t row, uint8_t* out) {
  const int depth = info.bits_per_pixel;
  const uint32_t mask = (1u << depth) - 1;
  for (int64_t x = 0; x < info.width; ++x) {
    const int64_t bit = x * depth;
    const uint32_t packed = reader.u8(row + static_cast<uint64_t>(bit / 8));
    const uint32_t index = (packed >> (8 - depth - bit % 8)) & mask;
    const uint64_t entry = info.palette_offset + uint64_t{index} * info.palette_entry_bytes;
    const bool known = index < info.n_palette;
    for (int c = 0; c < 3; ++c) {
      out[3 * x + c] = known ? reader.u8(entry + static_cast<uint64_t>(2 - c)) : uint8_t{0};
    }
  }
}

uint8_t field_value(uint32_t pixel, const BmpField& field) {
  if (field.max == 0) return 0;
  const uint64_t value = (pixel & field.mask) >> field.shift;
  return static_cast<uint8_t>((value * 255 + field.max / 2) / field.max);
}

/// Row of 16- or 32-bit pixels through their bit fields, to RGBA.
void expand_packed(const ByteReader& reader, const BmpInfo& info, uint64_t row, uint8_t* rgba) {
  const auto n_bytes = static_cast<uint64_t>(info.bits_per_pixel / 8);
  for (int64_t x = 0; x < info.width; ++x) {
    const uint64_t at = row + static_cast<uint64_t>(x) * n_bytes;
    const uint32_t pixel = n_bytes == 2 ? reader.le16(at) : reader.le32(at);
    for (size_t c = 0; c < 3; ++c)
      rgba[4 * x + static_cast<int64_t>(c)] = field_value(pixel, info.fields[c]);
    rgba[4 * x + 3] = info.fields[3].mask == 0 ? uint8_t{255} : field_value(pixel, info.fields[3]);
  }
}

}  // namespace

Result<Image> decode_bmp(std::span<const std::byte> bytes, const ImageHeader& header,
                         const DecodeOptions& options) {
  const ByteReader reader(bytes);
  TRIPTYCH_ASSIGN_OR_RETURN(const BmpInfo info, parse_bmp_info(bytes));
  // The last row may lack its padding.
  const uint64_t row_used = (static_cast<uint64_t>(info.width * info.bits_per_pixel) + 7) / 8;
  const uint64_t needed = info.row_bytes * static_cast<uint64_t>(info.height - 1) + row_used;
  if (!reader.has(info.pixel_offset, needed)) {
    return cut_off(ImageFormat::kBmp,
                   fmt::format("pixel data ({} bytes from byte {})", needed, info.pixel_offset),
                   reader.size());
  }
  Image image(header.width, header.height);
  std::vector<uint8_t> rgba(static_cast<size_t>(info.width * 4));
  for (int64_t y = 0; y < info.height; ++y) {
    const auto file_row = static_cast<uint64_t>(info.top_down ? y : info.height - 1 - y);
    const uint64_t row = info.pixel_offset + file_row * info.row_bytes;
    uint8_t* out = image.row(y);
    if (info.bits_per_pixel <= 8) {
      expand_indexed(reader, info, row, out);
    } else if (info.bits_per_pixel == 24) {
      for (int64_t x = 0; x < info.width; ++x) {
        for (int c = 0; c < 3; ++c) {
          out[3 * x + c] = reader.u8(row + static_cast<uint64_t>(3 * x + 2 - c));
        }
      }
    } else {
      expand_packed(reader, info, row, rgba.data());
      composite_over(rgba.data(), info.width, options.background, out);
    }
  }
  return image;
}

}  // namespace triptych
