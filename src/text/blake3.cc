#include "text/blake3.h"

#include "text/ffi.h"

namespace triptych {

struct Blake3Hasher::State {
  State() : raw(tt_blake3_new()) {}
  ~State() { tt_blake3_free(raw); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  tt_blake3_hasher* raw;
};

Blake3Hash blake3(std::span<const std::byte> bytes) {
  Blake3Hash hash;
  tt_blake3(ffi::bytes(bytes), hash.data());
  return hash;
}

Blake3Hash blake3(std::string_view bytes) { return blake3(std::as_bytes(std::span(bytes))); }

std::string to_hex(const Blake3Hash& hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * hash.size());
  for (const uint8_t byte : hash) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Blake3Hasher::Blake3Hasher() : state_(std::make_unique<State>()) {}
Blake3Hasher::~Blake3Hasher() = default;
Blake3Hasher::Blake3Hasher(Blake3Hasher&&) noexcept = default;
Blake3Hasher& Blake3Hasher::operator=(Blake3Hasher&&) noexcept = default;

void Blake3Hasher::update(std::span<const std::byte> bytes) {
  tt_blake3_update(state_->raw, ffi::bytes(bytes));
}

void Blake3Hasher::update(std::string_view bytes) { update(std::as_bytes(std::span(bytes))); }

void Blake3Hasher::update_framed(std::string_view part) {
  uint8_t length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<uint8_t>(uint64_t{part.size()} >> (8 * i));
  update(std::as_bytes(std::span(length)));
  update(part);
}

Blake3Hash Blake3Hasher::hash() const {
  Blake3Hash hash;
  tt_blake3_finish(state_->raw, hash.data());
  return hash;
}

}  // namespace triptych
