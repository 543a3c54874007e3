#include "media/image/bmp_header.h"

#include <fmt/format.h>

#include <bit>

#include "base/checked.h"
#include "media/image/byte_reader.h"
#include "media/image/header_parsers.h"

namespace triptych {
namespace {

constexpr uint64_t kFileHeaderBytes = 14;
constexpr uint32_t kCompressionNone = 0;
constexpr uint32_t kCompressionBitfields = 3;
constexpr uint32_t kCompressionAlphaBitfields = 6;

BmpField make_field(uint32_t mask) {
  if (mask == 0) return {};
  const auto shift = static_cast<uint32_t>(std::countr_zero(mask));
  return {mask, shift, mask >> shift};
}

/// The masks of 16 and 32 bits a pixel: from the file, or the ones that hold without any.
void set_fields(const ByteReader& reader, uint32_t header_size, uint32_t compression,
                BmpInfo* info) {
  std::array<uint32_t, 4> masks = {0x00FF0000, 0x0000FF00, 0x000000FF, 0};
  if (info->bits_per_pixel == 16) masks = {0x7C00, 0x03E0, 0x001F, 0};
  if (compression != kCompressionNone) {
    // Behind a 40-byte header, or inside the longer ones: the same place.
    const bool has_alpha = header_size >= 56 || compression == kCompressionAlphaBitfields;
    for (uint32_t i = 0; i < (has_alpha ? 4u : 3u); ++i) {
      masks[i] = reader.le32(kFileHeaderBytes + 40 + 4 * uint64_t{i});
    }
  }
  for (size_t i = 0; i < masks.size(); ++i) info->fields[i] = make_field(masks[i]);
}

}  // namespace

Result<BmpInfo> parse_bmp_info(std::span<const std::byte> bytes) {
  const ByteReader reader(bytes);
  BmpInfo info;
  const uint32_t header_size = reader.le32(kFileHeaderBytes);
  if (!reader.has(kFileHeaderBytes, header_size)) {
    return cut_off(ImageFormat::kBmp, "header", reader.size());
  }
  const bool os2 = header_size == 12;
  uint32_t compression = kCompressionNone;
  uint32_t n_colors = 0;
  if (os2) {
    info.width = reader.le16(18);
    info.height = reader.le16(20);
    info.bits_per_pixel = static_cast<int>(reader.le16(24));
    info.palette_entry_bytes = 3;
  } else {
    info.width = static_cast<int32_t>(reader.le32(18));
    const int64_t height = static_cast<int32_t>(reader.le32(22));
    info.top_down = height < 0;
    info.height = height < 0 ? -height : height;
    info.bits_per_pixel = static_cast<int>(reader.le16(28));
    if (header_size >= 40) {
      compression = reader.le32(30);
      n_colors = reader.le32(46);
    }
  }
  const int depth = info.bits_per_pixel;
  if (depth != 1 && depth != 4 && depth != 8 && depth != 16 && depth != 24 && depth != 32) {
    return data_loss(fmt::format("BMP: {} bits a pixel (byte 28) does not exist", depth));
  }
  const bool packed = depth == 16 || depth == 32;
  const bool bitfields =
      compression == kCompressionBitfields || compression == kCompressionAlphaBitfields;
  if (compression != kCompressionNone && !(bitfields && packed)) {
    return unsupported(fmt::format(
        "BMP: compression {} is not supported; send an uncompressed BMP, or PNG", compression));
  }
  if (info.width < 0) return data_loss("BMP: a negative width (byte 18)");
  info.pixel_offset = reader.le32(10);
  info.row_bytes =
      static_cast<uint64_t>(ceil_div(info.width * static_cast<int64_t>(depth), 32)) * 4;
  if (depth <= 8) {
    const uint32_t most = 1u << depth;
    info.n_palette = n_colors == 0 || n_colors > most ? most : n_colors;
    info.palette_offset = kFileHeaderBytes + header_size;
    if (!reader.has(info.palette_offset, uint64_t{info.n_palette} * info.palette_entry_bytes)) {
      return cut_off(ImageFormat::kBmp, "palette", reader.size());
    }
  }
  if (packed) set_fields(reader, header_size, compression, &info);
  return info;
}

Result<ImageHeader> parse_bmp_header(std::span<const std::byte> bytes) {
  TRIPTYCH_ASSIGN_OR_RETURN(const BmpInfo info, parse_bmp_info(bytes));
  ImageHeader header;
  header.format = ImageFormat::kBmp;
  header.width = info.width;
  header.height = info.height;
  header.palette = info.bits_per_pixel <= 8;
  header.channels = info.fields[3].mask != 0 ? 4 : 3;
  header.bit_depth = header.palette ? info.bits_per_pixel : 8;
  return header;
}

}  // namespace triptych
