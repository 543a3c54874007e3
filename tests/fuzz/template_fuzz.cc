// Bytes up to the first zero as a chat template, the rest as a user's text: whatever the template
// does, it ends, and the text makes no media place.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "text/chat_template.h"
#include "text/gguf_tokenizer.h"

namespace triptych {
namespace {

std::shared_ptr<const Tokenizer> make_tokenizer() {
  GgufTokenizerMetadata data;
  data.model = "gpt2";
  data.tokens = {"<s>", "<image>", "a", "b", "ab", "<", "i", "m", "g", "e", ">"};
  data.token_types = {3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  data.merges = {"a b"};
  data.bos_id = 0;
  const auto built = build_gguf_tokenizer(data);
  if (!built.is_ok()) std::abort();
  auto tokenizer = Tokenizer::from_json(built->tokenizer_json, built->config);
  if (!tokenizer.is_ok()) std::abort();
  return *tokenizer;
}

}  // namespace
}  // namespace triptych

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace triptych;
  static const auto tokenizer = make_tokenizer();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t zero = bytes.find('\0');
  const std::string_view source = bytes.substr(0, zero);
  const std::string_view text = zero == std::string_view::npos ? "<image>" : bytes.substr(zero + 1);
  const auto chat = ChatTemplate::from_text(source, tokenizer, "fuzz");
  if (!chat.is_ok()) return 0;
  ChatPrompt prompt;
  prompt.messages.push_back({.role = "user", .parts = {MessagePart::of_text(std::string(text))}});
  const RenderLimits limits{.fuel = 20'000, .max_output_bytes = 1 << 18, .max_seconds = 0.5};
  const MediaTokenIds media{.image = tokenizer->token_to_id("<image>")};
  const auto encoded = (*chat)->encode(prompt, media, limits);
  if (encoded.is_ok() && !encoded->slots.empty()) std::abort();
  return 0;
}
