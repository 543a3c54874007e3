#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer.h"
#include "triptych_text.h"

/// C++ sides of the Rust library's buffers. For this folder's sources only, never for its headers.
namespace triptych::ffi {

inline tt_bytes bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline tt_bytes bytes(std::span<const std::byte> data) {
  return {reinterpret_cast<const uint8_t*>(data.data()), data.size()};
}

/// Text that comes out of the library; freed with this object.
class Text {
 public:
  Text() = default;
  ~Text() { tt_text_free(text_); }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  tt_text* out() { return &text_; }
  std::string_view view() const { return {reinterpret_cast<const char*>(text_.data), text_.size}; }
  std::string string() const { return std::string(view()); }

 private:
  tt_text text_ = {nullptr, 0};
};

/// Ids that come out of the library.
class Ids {
 public:
  Ids() = default;
  ~Ids() { tt_ids_free(ids_); }
  Ids(const Ids&) = delete;
  Ids& operator=(const Ids&) = delete;

  tt_ids* out() { return &ids_; }
  std::vector<TokenId> vector() const { return {ids_.data, ids_.data + ids_.size}; }

 private:
  tt_ids ids_ = {nullptr, 0};
};

/// The library's status as ours; `error` is what the call filled.
inline Status to_status(tt_status status, const Text& error) {
  switch (status) {
    case TT_OK:
      return Status::ok();
    case TT_CORRUPT:
      return data_loss(error.string());
    case TT_STATE:
      return failed_precondition(error.string());
    case TT_INVALID:
    case TT_LIMIT:
      return invalid_argument(error.string());
    default:
      return internal_error(error.string());
  }
}

}  // namespace triptych::ffi

namespace triptych {

struct Tokenizer::Handle {
  explicit Handle(tt_tokenizer* tokenizer) : raw(tokenizer) {}
  ~Handle() { tt_tokenizer_free(raw); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  tt_tokenizer* raw;
};

}  // namespace triptych
