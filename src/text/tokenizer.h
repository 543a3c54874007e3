#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace triptych {

/// Index of a row of the embedding table.
using TokenId = int32_t;

/// Half-open range of bytes [begin, end) of a string.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
};

/// What tokenizer_config.json (or GGUF metadata) says beside the tokenizer itself.
struct TokenizerConfig {
  /// Named special tokens in the file's order: {"bos_token", "<s>"}, {"image_token", "<image>"}.
  /// Chat templates see each under its name.
  std::vector<std::pair<std::string, std::string>> named_tokens;
  /// Special tokens without a name (additional_special_tokens).
  std::vector<std::string> extra_tokens;
  /// Whether `add_special` puts BOS in front and EOS behind; unset leaves tokenizer.json's own
  /// rule.
  std::optional<bool> add_bos;
  std::optional<bool> add_eos;
  /// Array of added tokens with their flags: {content, id, special, lstrip, rstrip, normalized,
  /// ...}; only `content` is required. Tokens that tokenizer.json lacks are added to it.
  Json added_tokens;
  /// Longest input the checkpoint declares, 0 when it declares none (or the usual 1e30).
  int64_t model_max_length = 0;
};

/// A checkpoint's tokenizer: text to ids and back, equal to Hugging Face tokenizers. Immutable
/// after loading, so any number of threads may share one. Every error is a Status; nothing throws.
class Tokenizer {
 public:
  /// Loads tokenizer.json with tokenizer_config.json and special_tokens_map.json of a checkpoint
  /// folder. kNotFound without a tokenizer.json, kDataLoss for a broken one; errors name the file.
  static Result<std::shared_ptr<const Tokenizer>> from_folder(const std::string& folder);
  /// Makes a tokenizer from the text of a tokenizer.json; `source` stands in error messages.
  static Result<std::shared_ptr<const Tokenizer>> from_json(
      std::string_view tokenizer_json, TokenizerConfig config = {},
      std::string_view source = "tokenizer.json");
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// Ids of `text`; strings of special tokens in it become those tokens. `add_special` adds BOS and
  /// EOS as the checkpoint asks (raw completions do, rendered chat templates never do).
  /// kInvalidArgument when `text` is not UTF-8.
  Result<std::vector<TokenId>> encode(std::string_view text, bool add_special) const;

  /// As `encode` without BOS and EOS, but no special token is recognised that touches a byte of
  /// `plain` (sorted, disjoint): those bytes stay text. Nor does plain text ever become a special
  /// token by the model's own vocabulary. All else equals `encode(text, false)`.
  Result<std::vector<TokenId>> encode_segments(std::string_view text,
                                               std::span<const ByteRange> plain) const;

  /// Text of `ids`; ids that no token has give nothing. `skip_special` leaves special tokens out.
  /// Bytes that are not UTF-8 come out as U+FFFD.
  std::string decode(std::span<const TokenId> ids, bool skip_special) const;

  /// Largest id plus one, added tokens included. A model's logits may have more rows than that.
  size_t vocab_size() const;
  std::optional<TokenId> token_to_id(std::string_view token) const;
  /// The token as the vocabulary spells it ("Ġhello", "▁hello", "<0x0A>"), not decoded.
  std::optional<std::string> id_to_token(TokenId id) const;
  bool is_special(TokenId id) const;
  /// Strings of all special tokens: what user text must not be able to write.
  const std::vector<std::string>& special_strings() const { return special_strings_; }

  /// The string and the id of a named special token ("bos_token"); empty when the checkpoint has
  /// none.
  std::optional<std::string> named_token(std::string_view name) const;
  std::optional<TokenId> named_token_id(std::string_view name) const;
  std::optional<TokenId> bos_id() const { return named_token_id("bos_token"); }
  std::optional<TokenId> eos_id() const { return named_token_id("eos_token"); }
  const TokenizerConfig& config() const { return config_; }

 private:
  friend class StreamingDetokenizer;
  friend class GrammarCompiler;
  struct Handle;
  Tokenizer(std::unique_ptr<Handle> handle, TokenizerConfig config);

  std::unique_ptr<Handle> handle_;
  TokenizerConfig config_;
  std::vector<std::string> special_strings_;
};

/// Reads a parsed tokenizer_config.json; `file` stands in error messages.
Result<TokenizerConfig> parse_tokenizer_config(const Json& json, const std::string& file);

}  // namespace triptych
