#include "text/detokenizer.h"

#include "text/ffi.h"

namespace triptych {

struct StreamingDetokenizer::State {
  explicit State(tt_detokenizer* detokenizer) : raw(detokenizer) {}
  ~State() { tt_detokenizer_free(raw); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  tt_detokenizer* raw;
};

StreamingDetokenizer::StreamingDetokenizer(std::shared_ptr<const Tokenizer> tokenizer,
                                           bool skip_special)
    : tokenizer_(std::move(tokenizer)),
      state_(std::make_unique<State>(tt_detokenizer_new(tokenizer_->handle_->raw, skip_special))) {}

StreamingDetokenizer::~StreamingDetokenizer() = default;
StreamingDetokenizer::StreamingDetokenizer(StreamingDetokenizer&&) noexcept = default;
StreamingDetokenizer& StreamingDetokenizer::operator=(StreamingDetokenizer&&) noexcept = default;

std::string StreamingDetokenizer::push(TokenId id) {
  if (id < 0) return {};
  ffi::Text text;
  tt_detokenizer_push(state_->raw, static_cast<uint32_t>(id), text.out());
  return text.string();
}

std::string StreamingDetokenizer::flush() {
  ffi::Text text;
  tt_detokenizer_flush(state_->raw, text.out());
  return text.string();
}

}  // namespace triptych
