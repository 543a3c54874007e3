#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "text/blake3.h"

namespace triptych {

/// BLAKE3 over parts that are each framed by their length, behind the name of what is identified:
/// neither two lists of parts nor two kinds of id can run together.
class FramedHash {
 public:
  explicit FramedHash(std::string_view kind) { hasher_.update_framed(kind); }

  FramedHash& add(std::string_view part) {
    hasher_.update_framed(part);
    return *this;
  }
  FramedHash& add(std::span<const std::byte> part) {
    return add(std::string_view(reinterpret_cast<const char*>(part.data()), part.size()));
  }
  FramedHash& add(const Blake3Hash& id) { return add(std::as_bytes(std::span(id))); }
  /// 8 bytes, little endian.
  FramedHash& add(int64_t number) {
    std::array<uint8_t, 8> bytes{};
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<uint8_t>(static_cast<uint64_t>(number) >> (8 * i));
    }
    return add(std::as_bytes(std::span(bytes)));
  }
  Blake3Hash hash() const { return hasher_.hash(); }

 private:
  Blake3Hasher hasher_;
};

}  // namespace triptych
