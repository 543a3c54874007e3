#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace triptych {

/// A BLAKE3 hash of 256 bits; never truncated.
using Blake3Hash = std::array<uint8_t, 32>;

Blake3Hash blake3(std::span<const std::byte> bytes);
Blake3Hash blake3(std::string_view bytes);
/// 64 lower-case hexadecimal digits.
std::string to_hex(const Blake3Hash& hash);

/// Hashes a stream of bytes, or a chain of parts each framed by its length.
class Blake3Hasher {
 public:
  Blake3Hasher();
  ~Blake3Hasher();
  Blake3Hasher(Blake3Hasher&&) noexcept;
  Blake3Hasher& operator=(Blake3Hasher&&) noexcept;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view bytes);
  /// Adds the part's length (8 bytes, little endian), then the part: no two lists of parts can then
  /// run together into the same bytes.
  void update_framed(std::string_view part);
  /// The hash of everything so far; more may be added afterwards.
  Blake3Hash hash() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace triptych
