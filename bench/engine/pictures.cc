#include "pictures.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <random>

namespace triptych::bench {
namespace {

std::string big_endian(uint64_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xFF);
  return out;
}

std::string chunk(std::string_view type, std::string_view data) {
  const std::string body = std::string(type) + std::string(data);
  return big_endian(data.size()) + body +
         big_endian(crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size()));
}

/// A zlib stream that stores and does not compress.
std::string stored(std::string_view data) {
  uLongf n = compressBound(static_cast<uLong>(data.size()));
  std::string out(n, '\0');
  compress2(reinterpret_cast<Bytef*>(out.data()), &n, reinterpret_cast<const Bytef*>(data.data()),
            static_cast<uLong>(data.size()), Z_NO_COMPRESSION);
  out.resize(n);
  return out;
}

}  // namespace

std::string png_bytes(const PngParts& parts) {
  std::string head = big_endian(static_cast<uint64_t>(parts.width)) +
                     big_endian(static_cast<uint64_t>(parts.height));
  head += static_cast<char>(parts.bit_depth);
  head += static_cast<char>(parts.color_type);
  head += std::string(3, '\0');
  const auto n_rows = static_cast<size_t>(parts.height);
  const size_t row_bytes = parts.rows.size() / n_rows;
  std::string lines;
  for (size_t y = 0; y < n_rows; ++y) {
    lines += '\0';  // no filter
    lines += parts.rows.substr(y * row_bytes, row_bytes);
  }
  std::string out = "\x89PNG\r\n\x1a\n" + chunk("IHDR", head);
  if (!parts.palette.empty()) out += chunk("PLTE", parts.palette);
  if (!parts.transparency.empty()) out += chunk("tRNS", parts.transparency);
  return out + chunk("IDAT", stored(lines)) + chunk("IEND", "");
}

MediaItem synthetic_picture(uint32_t seed, int64_t width, int64_t height) {
  std::mt19937 random(seed);
  PngParts parts{.width = width, .height = height, .bit_depth = 4, .color_type = 3};
  for (int i = 0; i < 16 * 3; ++i) parts.palette += static_cast<char>(random() & 0xFF);
  const auto row_bytes = static_cast<size_t>((width + 1) / 2);
  parts.rows.assign(row_bytes * static_cast<size_t>(height), '\0');
  for (uint32_t i = 1; i < 16; ++i) {
    const size_t left = random() % row_bytes;
    const size_t right = std::min(row_bytes, left + 1 + random() % (row_bytes / 2));
    const size_t top = random() % static_cast<size_t>(height);
    const size_t bottom =
        std::min(static_cast<size_t>(height), top + 1 + random() % static_cast<size_t>(height));
    for (size_t y = top; y < bottom; ++y) {
      std::fill(parts.rows.begin() + static_cast<int64_t>(y * row_bytes + left),
                parts.rows.begin() + static_cast<int64_t>(y * row_bytes + right),
                static_cast<char>(i << 4 | i));
    }
  }
  return {Modality::kImage, fmt::format("picture {}", seed),
          std::make_shared<const std::string>(png_bytes(parts))};
}

}  // namespace triptych::bench
