#include "pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>

namespace triptych::bench {
namespace {

uint32_t crc32(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> out{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? 0xEDB88320u : 0u);
      out[i] = value;
    }
    return out;
  }();
  uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<uint8_t>(c)) & 0xFF];
  return crc ^ 0xFFFFFFFFu;
}

uint32_t adler32(std::string_view bytes) {
  uint32_t a = 1;
  uint32_t b = 0;
  for (const char c : bytes) {
    a = (a + static_cast<uint8_t>(c)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

std::string big_endian(uint64_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xFF);
  return out;
}

std::string chunk(std::string_view type, std::string_view data) {
  const std::string body = std::string(type) + std::string(data);
  return big_endian(data.size()) + body + big_endian(crc32(body));
}

/// A zlib stream of stored blocks (RFC 1950, RFC 1951 3.2.4).
std::string stored(std::string_view data) {
  std::string out = "\x78\x01";
  for (size_t at = 0; at < data.size(); at += 65535) {
    const size_t n = std::min<size_t>(65535, data.size() - at);
    out += static_cast<char>(at + n == data.size());
    for (const size_t field : {n, ~n}) {
      out += static_cast<char>(field & 0xFF);
      out += static_cast<char>(field >> 8 & 0xFF);
    }
    out += data.substr(at, n);
  }
  return out + big_endian(adler32(data));
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
