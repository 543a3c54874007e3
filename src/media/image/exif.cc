#include "media/image/exif.h"

#include <cstdint>

#include "media/image/byte_reader.h"

namespace triptych {
namespace {

constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kTypeShort = 3;
constexpr uint32_t kTypeLong = 4;

}  // namespace

int exif_orientation(std::span<const std::byte> block) {
  using std::string_view_literals::operator""sv;
  ByteReader reader(block);
  if (reader.starts_with(0, "Exif\0\0"sv)) reader = ByteReader(block.subspan(6));
  bool little = false;
  if (reader.starts_with(0, "II*\0"sv)) {
    little = true;
  } else if (!reader.starts_with(0, "MM\0*"sv)) {
    return 1;
  }
  const auto u16 = [&](uint64_t at) { return little ? reader.le16(at) : reader.be16(at); };
  const auto u32 = [&](uint64_t at) { return little ? reader.le32(at) : reader.be32(at); };

  const uint64_t ifd = u32(4);
  const uint32_t n_entries = u16(ifd);
  for (uint32_t i = 0; i < n_entries; ++i) {
    const uint64_t entry = ifd + 2 + uint64_t{12} * i;
    if (!reader.has(entry, 12)) return 1;
    if (u16(entry) != kOrientationTag) continue;
    const uint32_t type = u16(entry + 2);
    if (u32(entry + 4) != 1 || (type != kTypeShort && type != kTypeLong)) return 1;
    const uint32_t value = type == kTypeShort ? u16(entry + 8) : u32(entry + 8);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace triptych
