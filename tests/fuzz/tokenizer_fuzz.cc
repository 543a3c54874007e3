// Bytes as a tokenizer.json, and bytes as text for a tokenizer of each decoder's kind.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "text/detokenizer.h"
#include "text/gguf_tokenizer.h"
#include "text/tokenizer.h"

namespace triptych {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

/// A small vocabulary: all bytes, some words, one special token.
std::shared_ptr<const Tokenizer> make_tokenizer(const std::string& model) {
  GgufTokenizerMetadata data;
  data.model = model;
  data.tokens = {"<unk>", "<image>"};
  data.token_types = {2, 3};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof(name), "<0x%02X>", byte);
    data.tokens.push_back(name);
    data.token_types.push_back(6);
  }
  for (const char* token : {"a", "b", "ab", "\u2581", "\u2581a", "\u0120", "\u0120a"}) {
    data.tokens.push_back(token);
    data.token_types.push_back(1);
  }
  data.scores.assign(data.tokens.size(), 0.0F);
  data.merges = {"a b"};
  data.unknown_id = 0;
  const auto built = build_gguf_tokenizer(data);
  require(built.is_ok());
  auto tokenizer = Tokenizer::from_json(built->tokenizer_json, built->config);
  require(tokenizer.is_ok());
  return *tokenizer;
}

void try_text(const std::shared_ptr<const Tokenizer>& tokenizer, std::string_view text) {
  const auto ids = tokenizer->encode(text, true);
  if (!ids.is_ok()) return;
  StreamingDetokenizer stream(tokenizer, false);
  std::string joined;
  for (const TokenId id : *ids) joined += stream.push(id);
  joined += stream.flush();
  require(joined == tokenizer->decode(*ids, false));
  const ByteRange whole{0, text.size()};
  const auto plain = tokenizer->encode_segments(text, {&whole, text.empty() ? 0u : 1u});
  if (!plain.is_ok()) return;
  const auto unknown = tokenizer->named_token_id("unk_token");
  for (const TokenId id : *plain) require(!tokenizer->is_special(id) || id == unknown);
}

}  // namespace
}  // namespace triptych

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace triptych;
  static const auto byte_level = make_tokenizer("gpt2");
  static const auto sentencepiece = make_tokenizer("llama");
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try_text(byte_level, bytes);
  try_text(sentencepiece, bytes);
  const auto parsed = Tokenizer::from_json(bytes);
  if (!parsed.is_ok()) return 0;
  (void)(*parsed)->encode("a b <image> \u00e9\u65e5 12", true);
  (void)(*parsed)->encode_segments("a <s> b", {});
  const TokenId few[] = {0, 1, 2, 3, 300, -1};
  (void)(*parsed)->decode(few, false);
  return 0;
}
