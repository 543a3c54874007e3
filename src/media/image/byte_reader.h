#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace triptych {

/// Bounds-checked reads at absolute offsets of untrusted bytes. A read past the end gives 0 and is
/// never undefined; callers ask has() where the difference matters.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t size() const { return bytes_.size(); }
  /// True when `n` bytes lie at `offset`.
  bool has(uint64_t offset, uint64_t n) const {
    return offset <= bytes_.size() && n <= bytes_.size() - offset;
  }
  uint8_t u8(uint64_t offset) const {
    return has(offset, 1) ? static_cast<uint8_t>(bytes_[offset]) : uint8_t{0};
  }
  uint32_t le16(uint64_t o) const { return u8(o) | static_cast<uint32_t>(u8(o + 1)) << 8; }
  uint32_t be16(uint64_t o) const { return u8(o + 1) | static_cast<uint32_t>(u8(o)) << 8; }
  uint32_t le24(uint64_t o) const { return le16(o) | static_cast<uint32_t>(u8(o + 2)) << 16; }
  uint32_t le32(uint64_t o) const { return le16(o) | le16(o + 2) << 16; }
  uint32_t be32(uint64_t o) const { return be16(o + 2) | be16(o) << 16; }
  /// True when the bytes at `offset` spell `text`.
  bool starts_with(uint64_t offset, std::string_view text) const {
    return has(offset, text.size()) &&
           std::memcmp(bytes_.data() + offset, text.data(), text.size()) == 0;
  }
  /// The bytes [offset, offset + n), cut where the data ends.
  std::span<const std::byte> slice(uint64_t offset, uint64_t n) const {
    if (offset >= bytes_.size()) return {};
    const uint64_t left = bytes_.size() - offset;
    return bytes_.subspan(offset, n < left ? n : left);
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace triptych
