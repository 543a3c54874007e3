#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "media/image/image.h"

/// Pixels, checksums and files that the tests of this folder and tools/parity/image_goldens.py
/// share.
namespace triptych::test {

inline constexpr const char* kSamples = "tests/field/data/image/";
inline constexpr const char* kGoldens = "tests/parity/goldens/image/";

/// The same bytes as `noise` in image_goldens.py.
inline Image noise_image(int64_t width, int64_t height, uint32_t seed) {
  Image image(width, height);
  for (int64_t i = 0; i < image.n_bytes(); ++i) {
    uint32_t value = static_cast<uint32_t>(i) * 2654435761u + seed;
    value ^= value >> 15;
    value *= 2246822519u;
    value ^= value >> 13;
    value *= 3266489917u;
    image.data()[i] = static_cast<uint8_t>(value >> 24);
  }
  return image;
}

inline uint32_t crc32(const void* data, size_t n_bytes) {
  return static_cast<uint32_t>(::crc32_z(0, static_cast<const Bytef*>(data), n_bytes));
}

inline uint32_t crc32(const Image& image) {
  return crc32(image.data(), static_cast<size_t>(image.n_bytes()));
}

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

inline std::string load_file(const std::string& path) {
  auto text = read_file(path);
  EXPECT_TRUE(text.is_ok()) << text.status().message();
  return text.is_ok() ? std::move(text).value() : std::string();
}

inline std::string load_sample(const std::string& name) { return load_file(kSamples + name); }

inline Json load_golden(const std::string& name) {
  auto json = parse_json_file(kGoldens + name);
  EXPECT_TRUE(json.is_ok()) << json.status().message();
  return json.is_ok() ? std::move(json).value() : Json();
}

inline std::array<int, 3> pixel(const Image& image, int64_t x, int64_t y) {
  const uint8_t* at = image.row(y) + 3 * x;
  return {at[0], at[1], at[2]};
}

}  // namespace triptych::test
