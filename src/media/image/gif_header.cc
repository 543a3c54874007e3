#include <fmt/format.h>

#include <algorithm>

#include "media/image/byte_reader.h"
#include "media/image/header_parsers.h"

namespace triptych {
namespace {

/// Position behind a chain of data sub-blocks, or nothing when the data ends inside it.
bool skip_sub_blocks(const ByteReader& reader, uint64_t* at) {
  for (;;) {
    if (!reader.has(*at, 1)) return false;
    const uint8_t length = reader.u8(*at);
    *at += 1 + uint64_t{length};
    if (length == 0) return true;
  }
}

uint64_t color_table_bytes(uint8_t flags) {
  return (flags & 0x80) != 0 ? uint64_t{3} << ((flags & 7) + 1) : 0;
}

}  // namespace

Result<ImageHeader> parse_gif_header(std::span<const std::byte> bytes) {
  const ByteReader reader(bytes);
  ImageHeader header;
  header.format = ImageFormat::kGif;
  header.palette = true;
  header.channels = 3;
  if (!reader.has(6, 7)) return cut_off(ImageFormat::kGif, "screen descriptor", reader.size());
  header.width = reader.le16(6);
  header.height = reader.le16(8);
  header.bit_depth = (reader.u8(10) & 7) + 1;
  uint64_t at = 13 + color_table_bytes(reader.u8(10));
  int n_frames = 0;
  while (reader.has(at, 1) && n_frames < 2) {
    const uint8_t block = reader.u8(at);
    if (block == 0x3B) break;  // trailer
    if (block == 0x21) {       // extension: introducer, label, sub-blocks
      at += 2;
    } else if (block == 0x2C) {
      if (!reader.has(at, 10)) {
        return cut_off(ImageFormat::kGif, "image descriptor", reader.size());
      }
      // A first frame that reaches past the screen enlarges it, as Pillow has it.
      if (n_frames == 0) {
        header.width = std::max<int64_t>(header.width, reader.le16(at + 1) + reader.le16(at + 5));
        header.height = std::max<int64_t>(header.height, reader.le16(at + 3) + reader.le16(at + 7));
      }
      ++n_frames;
      at += 11 + color_table_bytes(reader.u8(at + 9));  // descriptor, table, LZW code size
    } else {
      if (n_frames > 0) break;  // rubbish behind a whole frame is no reason to refuse it
      return data_loss(fmt::format("GIF: unknown block 0x{:02X} at byte {}", block, at));
    }
    if (!skip_sub_blocks(reader, &at)) break;
  }
  if (n_frames == 0) return cut_off(ImageFormat::kGif, "file (no frame)", reader.size());
  header.animated = n_frames > 1;
  header.decoded_bytes = header.width;
  return header;
}

}  // namespace triptych
