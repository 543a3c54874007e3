#include "media/image/image_format.h"

#include <array>
#include <cstdint>
#include <string>

#include "media/image/byte_reader.h"

namespace triptych {
namespace {

using std::string_view_literals::operator""sv;

struct Signature {
  uint32_t offset;
  std::string_view bytes;
  std::string_view name;
};

// Things people send where a picture belongs, by the bytes they start with.
constexpr std::array kRefused = {
    Signature{0, "II*\0"sv, "TIFF"},
    Signature{0, "MM\0*"sv, "TIFF"},
    Signature{0, "II+\0"sv, "BigTIFF"},
    Signature{0, "MM\0+"sv, "BigTIFF"},
    Signature{0, "\0\0\0\x0CjP  "sv, "JPEG 2000"},
    Signature{0, "\xFF\x4F\xFF\x51"sv, "JPEG 2000"},
    Signature{0, "\0\0\0\x0CJXL "sv, "JPEG XL"},
    Signature{0, "\xFF\x0A"sv, "JPEG XL"},
    Signature{0, "\xFF\xD8"sv, "a broken JPEG header"},
    Signature{0, "8BPS"sv, "PSD"},
    Signature{0, "\0\0\1\0"sv, "ICO"},
    Signature{0, "\0\0\2\0"sv, "CUR"},
    Signature{0, "DDS "sv, "DDS"},
    Signature{0, "qoif"sv, "QOI"},
    Signature{0, "\x76\x2F\x31\x01"sv, "OpenEXR"},
    Signature{0, "#?RADIANCE"sv, "Radiance HDR"},
    Signature{0, "P1\n"sv, "PNM"},
    Signature{0, "P2\n"sv, "PNM"},
    Signature{0, "P3\n"sv, "PNM"},
    Signature{0, "P4\n"sv, "PNM"},
    Signature{0, "P5\n"sv, "PNM"},
    Signature{0, "P6\n"sv, "PNM"},
    Signature{0, "%PDF"sv, "PDF"},
    Signature{0, "%!PS"sv, "PostScript"},
    Signature{0, "\x1A\x45\xDF\xA3"sv, "WebM or Matroska video"},
    Signature{8, "AVI "sv, "AVI video"},
    Signature{8, "WAVE"sv, "WAV audio"},
    Signature{0, "OggS"sv, "Ogg"},
    Signature{0, "fLaC"sv, "FLAC audio"},
    Signature{0, "ID3"sv, "MP3 audio"},
    Signature{0, "\0\0\1\xBA"sv, "MPEG video"},
    Signature{0, "\x1F\x8B"sv, "gzip data"},
    Signature{0, "PK\3\4"sv, "a ZIP archive"},
    Signature{0, "version https://git-lfs"sv, "a Git LFS pointer"},
};

/// ISO base media files ("....ftyp" + brand): HEIC, AVIF and MP4 differ in their brands alone.
std::string_view name_iso_media(const ByteReader& reader) {
  if (!reader.starts_with(4, "ftyp"sv)) return {};
  const auto brand_is = [&](uint64_t at, std::string_view brand) {
    return reader.starts_with(at, brand);
  };
  const uint64_t box_end = std::min<uint64_t>(reader.be32(0), 256);
  bool heif = false;
  for (uint64_t at = 8; at + 4 <= box_end || at == 8; at += 4) {
    if (brand_is(at, "avif"sv) || brand_is(at, "avis"sv)) return "AVIF";
    for (const auto brand : {"heic"sv, "heix"sv, "heim"sv, "heis"sv, "hevc"sv, "hevx"sv}) {
      if (brand_is(at, brand)) return "HEIC";
    }
    heif = heif || brand_is(at, "mif1"sv) || brand_is(at, "msf1"sv);
  }
  if (heif) return "HEIF";
  return brand_is(8, "qt  "sv) ? "QuickTime video" : "MP4 video";
}

/// SVG, HTML and JSON are texts: what counts is the first thing after blanks and a byte order mark.
std::string_view name_text(const ByteReader& reader) {
  uint64_t at = reader.starts_with(0, "\xEF\xBB\xBF"sv) ? 3 : 0;
  while (at < 256 && (reader.u8(at) == ' ' || (reader.u8(at) >= '\t' && reader.u8(at) <= '\r'))) {
    ++at;
  }
  std::string head;
  for (uint64_t i = at; i < at + 1024 && reader.has(i, 1); ++i) {
    const char c = static_cast<char>(reader.u8(i));
    head.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c);
  }
  if (head.starts_with("<svg")) return "SVG";
  if (head.starts_with("<!doctype html") || head.starts_with("<html")) return "HTML";
  if (head.starts_with("<?xml") || head.starts_with("<!")) {
    return head.find("<svg") != std::string::npos ? "SVG" : "XML";
  }
  if (head.starts_with("{") || head.starts_with("[")) return "JSON text";
  if (head.starts_with("data:")) return "a data URI that has not been decoded";
  if (head.starts_with("http://") || head.starts_with("https://")) return "a URL";
  return {};
}

}  // namespace

std::string_view image_format_name(ImageFormat format) {
  switch (format) {
    case ImageFormat::kJpeg:
      return "JPEG";
    case ImageFormat::kPng:
      return "PNG";
    case ImageFormat::kWebp:
      return "WebP";
    case ImageFormat::kGif:
      return "GIF";
    case ImageFormat::kBmp:
      return "BMP";
  }
  return "?";
}

std::optional<ImageFormat> sniff_image_format(std::span<const std::byte> bytes) {
  const ByteReader reader(bytes);
  if (reader.starts_with(0, "\xFF\xD8\xFF"sv)) return ImageFormat::kJpeg;
  if (reader.starts_with(0, "\x89PNG\r\n\x1A\n"sv)) return ImageFormat::kPng;
  if (reader.starts_with(0, "RIFF"sv) && reader.starts_with(8, "WEBP"sv)) return ImageFormat::kWebp;
  if (reader.starts_with(0, "GIF87a"sv) || reader.starts_with(0, "GIF89a"sv)) {
    return ImageFormat::kGif;
  }
  // "BM" alone is too little for plain text not to be taken for a picture: the size of the header
  // that follows must be one that exists.
  if (reader.starts_with(0, "BM"sv)) {
    for (const uint32_t header_size : {12u, 16u, 40u, 52u, 56u, 64u, 108u, 124u}) {
      if (reader.le32(14) == header_size) return ImageFormat::kBmp;
    }
  }
  return std::nullopt;
}

std::string_view name_refused_format(std::span<const std::byte> bytes) {
  const ByteReader reader(bytes);
  for (const Signature& signature : kRefused) {
    if (reader.starts_with(signature.offset, signature.bytes)) return signature.name;
  }
  if (const std::string_view name = name_iso_media(reader); !name.empty()) return name;
  return name_text(reader);
}

}  // namespace triptych
