#include "identity_cases.h"

#include <array>
#include <random>

#include "pictures.h"

namespace triptych::bench {
namespace {

std::string little_endian(uint32_t value, int n_bytes) {
  std::string out;
  for (int i = 0; i < n_bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

std::string random_bytes(std::mt19937& random, size_t n, uint32_t below = 256) {
  std::string out(n, '\0');
  for (char& c : out) c = static_cast<char>(random() % below);
  return out;
}

/// A 24-bit Windows bitmap of RGB rows whose width is a multiple of 4.
std::string bmp_bytes(uint32_t width, uint32_t height, const std::string& rgb) {
  std::string out = "BM" + little_endian(54 + width * height * 3, 4) + std::string(4, '\0') +
                    little_endian(54, 4) + little_endian(40, 4) + little_endian(width, 4) +
                    little_endian(height, 4) + little_endian(1, 2) + little_endian(24, 2) +
                    std::string(24, '\0');
  for (uint32_t y = height; y-- > 0;) {
    for (uint32_t x = 0; x < width; ++x) {
      for (const uint32_t channel : {2u, 1u, 0u}) out += rgb[(y * width + x) * 3 + channel];
    }
  }
  return out;
}

/// Image data of 7-bit indices: the table is cleared before codes outgrow 8 bits, so that every
/// code is a byte (GIF89a appendix F).
std::string gif_codes(const std::string& indices) {
  std::string codes;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (i % 100 == 0) codes += '\x80';
    codes += indices[i];
  }
  codes += '\x81';
  std::string out = "\x07";
  for (size_t at = 0; at < codes.size(); at += 255) {
    const std::string block = codes.substr(at, 255);
    out += static_cast<char>(block.size());
    out += block;
  }
  return out + '\0';
}

std::string gif_bytes(uint32_t side, const std::string& palette,
                      const std::vector<std::string>& frames) {
  std::string out = "GIF89a" + little_endian(side, 2) + little_endian(side, 2) + "\xF6" +
                    std::string(2, '\0') + palette;
  for (const std::string& frame : frames) {
    out += std::string("\x21\xF9\x04\x00\x0A\x00\x00\x00", 8);
    out += "," + std::string(4, '\0') + little_endian(side, 2) + little_endian(side, 2) + '\0' +
           gif_codes(frame);
  }
  return out + ";";
}

void add_rgb(std::mt19937& random, std::vector<NearFile>& out) {
  const std::string rgb = random_bytes(random, 30 * 100 * 3);
  const PngParts tall{.width = 30, .height = 100, .rows = rgb};
  PngParts wide = tall;
  std::swap(wide.width, wide.height);
  PngParts one_off = tall;
  const size_t at = random() % rgb.size();
  one_off.rows[at] = static_cast<char>(one_off.rows[at] ^ 1);
  out.push_back({"sides swapped", png_bytes(tall)});
  out.push_back({"sides swapped", png_bytes(wide)});
  out.push_back({"one sample", png_bytes(one_off)});
  out.push_back({"trailing bytes", png_bytes(tall) + '\0'});
  out.push_back({"trailing bytes", png_bytes(tall) + png_bytes(wide)});
}

void add_formats(std::mt19937& random, std::vector<NearFile>& out) {
  const std::string rgb = random_bytes(random, 20 * 28 * 3);
  out.push_back({"format", png_bytes({.width = 20, .height = 28, .rows = rgb})});
  out.push_back({"format", bmp_bytes(20, 28, rgb)});
  out.push_back({"format", bmp_bytes(28, 20, rgb)});
  out.push_back({"format", png_bytes({.width = 28, .height = 20, .rows = rgb})});
}

void add_transparency(std::mt19937& random, std::vector<NearFile>& out) {
  PngParts base{.width = 24, .height = 24, .color_type = 3};
  base.palette = random_bytes(random, 16 * 3);
  base.rows = random_bytes(random, 24 * 24, 16);
  out.push_back({"tRNS", png_bytes(base)});
  for (const char alpha : {'\0', '\1', '\x80', '\xFE', '\xFF'}) {
    for (const size_t entry : {size_t{0}, size_t{7}, size_t{15}}) {
      PngParts with = base;
      with.transparency = std::string(entry, '\xFF') + alpha;
      out.push_back({"tRNS", png_bytes(with)});
    }
  }
  PngParts gray{.width = 24, .height = 24, .color_type = 0, .rows = base.rows};
  out.push_back({"tRNS", png_bytes(gray)});
  gray.transparency = std::string("\0\5", 2);
  out.push_back({"tRNS", png_bytes(gray)});
  PngParts turned = base;
  turned.palette = base.palette.substr(3) + base.palette.substr(0, 3);
  out.push_back({"palette", png_bytes(turned)});
}

void add_frames(std::mt19937& random, std::vector<NearFile>& out) {
  const std::string palette = random_bytes(random, 128 * 3);
  const std::string a = random_bytes(random, 16 * 16, 128);
  const std::string b = random_bytes(random, 16 * 16, 128);
  for (const auto& frames : std::vector<std::vector<std::string>>{{a, b}, {b, a}, {a}, {b, b}}) {
    out.push_back({"frame order", gif_bytes(16, palette, frames)});
  }
}

}  // namespace

std::vector<NearFile> near_files(uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<NearFile> out;
  add_rgb(random, out);
  add_formats(random, out);
  add_transparency(random, out);
  add_frames(random, out);
  return out;
}

std::vector<NearFile> near_orientations(const std::string& jpeg) {
  std::vector<NearFile> out = {{"orientation", jpeg}};
  for (char orientation = 1; orientation <= 8; ++orientation) {
    // APP1: "Exif", a little-endian TIFF header, one directory of one entry: 0x0112, SHORT, 1.
    std::string exif("Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 24);
    exif += orientation;
    exif += std::string(7, '\0');
    const size_t n = exif.size() + 2;
    std::string app1 = "\xFF\xE1";
    app1 += static_cast<char>(n >> 8);
    app1 += static_cast<char>(n & 0xFF);
    out.push_back({"orientation", jpeg.substr(0, 2) + app1 + exif + jpeg.substr(2)});
  }
  return out;
}

}  // namespace triptych::bench
