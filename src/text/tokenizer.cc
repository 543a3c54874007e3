#include "text/tokenizer.h"

#include <algorithm>

#include "base/file.h"
#include "text/ffi.h"

#if defined(__SANITIZE_THREAD__)
/// The Rust library is not instrumented, so ThreadSanitizer cannot see the lock around the word
/// cache of its tokenizers.
extern "C" const char* __tsan_default_suppressions() { return "race:tokenizers::utils::cache\n"; }
#endif

namespace triptych {
namespace {

/// What the Rust side needs of the configuration (triptych_text.h: tt_tokenizer_new).
std::string config_text(const TokenizerConfig& config) {
  Json json = Json::object();
  json.set("added_tokens", config.added_tokens.is_array() ? config.added_tokens : Json::array());
  std::vector<Json> special;
  for (const auto& [name, text] : config.named_tokens) {
    special.push_back(Json::string(text));
    if (name == "bos_token") json.set("bos", Json::string(text));
    if (name == "eos_token") json.set("eos", Json::string(text));
  }
  for (const auto& text : config.extra_tokens) special.push_back(Json::string(text));
  json.set("special", Json::array(std::move(special)));
  if (config.add_bos) json.set("add_bos", Json::boolean(*config.add_bos));
  if (config.add_eos) json.set("add_eos", Json::boolean(*config.add_eos));
  return json.dump();
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<Handle> handle, TokenizerConfig config)
    : handle_(std::move(handle)), config_(std::move(config)) {}

Tokenizer::~Tokenizer() = default;

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_json(std::string_view tokenizer_json,
                                                              TokenizerConfig config,
                                                              std::string_view source) {
  tt_tokenizer* raw = nullptr;
  ffi::Text error;
  const std::string settings = config_text(config);
  const tt_status status =
      tt_tokenizer_new(ffi::bytes(tokenizer_json), ffi::bytes(settings), &raw, error.out());
  TRIPTYCH_RETURN_IF_ERROR(ffi::to_status(status, error).with_context(source));
  std::shared_ptr<Tokenizer> made(new Tokenizer(std::make_unique<Handle>(raw), std::move(config)));
  ffi::Text strings;
  tt_tokenizer_special_strings(raw, strings.out());
  TRIPTYCH_ASSIGN_OR_RETURN(const Json list, parse_json(strings.view()));
  for (const Json& text : list.elements()) made->special_strings_.push_back(text.string_value());
  return std::shared_ptr<const Tokenizer>(std::move(made));
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_folder(const std::string& folder) {
  const std::string path = folder + "/tokenizer.json";
  if (!file_exists(path)) {
    return not_found(path + ": no such file (a checkpoint needs Hugging Face's tokenizer.json)");
  }
  TokenizerConfig config;
  const std::string config_path = folder + "/tokenizer_config.json";
  const std::string map_path = folder + "/special_tokens_map.json";
  // Duplicate keys are common in these files and harmless.
  const JsonLimits lenient{.reject_duplicate_keys = false};
  if (file_exists(config_path)) {
    TRIPTYCH_ASSIGN_OR_RETURN(Json json, parse_json_file(config_path, lenient));
    if (json.find("added_tokens_decoder") == nullptr && file_exists(map_path)) {
      TRIPTYCH_ASSIGN_OR_RETURN(const Json map, parse_json_file(map_path, lenient));
      for (const auto& [name, value] : map.members()) json.set(name, value);
    }
    TRIPTYCH_ASSIGN_OR_RETURN(config, parse_tokenizer_config(json, config_path));
  } else if (file_exists(map_path)) {
    TRIPTYCH_ASSIGN_OR_RETURN(const Json map, parse_json_file(map_path, lenient));
    TRIPTYCH_ASSIGN_OR_RETURN(config, parse_tokenizer_config(map, map_path));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string json, read_file(path));
  return from_json(json, std::move(config), path);
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text, bool add_special) const {
  ffi::Ids ids;
  ffi::Text error;
  const tt_status status =
      tt_tokenizer_encode(handle_->raw, ffi::bytes(text), add_special, ids.out(), error.out());
  TRIPTYCH_RETURN_IF_ERROR(ffi::to_status(status, error));
  return ids.vector();
}

Result<std::vector<TokenId>> Tokenizer::encode_segments(std::string_view text,
                                                        std::span<const ByteRange> plain) const {
  std::vector<size_t> flat;
  flat.reserve(2 * plain.size());
  for (const ByteRange& range : plain) {
    flat.push_back(range.begin);
    flat.push_back(range.end);
  }
  ffi::Ids ids;
  ffi::Text error;
  const tt_status status = tt_tokenizer_encode_protected(
      handle_->raw, ffi::bytes(text), flat.data(), plain.size(), ids.out(), error.out());
  TRIPTYCH_RETURN_IF_ERROR(ffi::to_status(status, error));
  return ids.vector();
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  const std::vector<uint32_t> unsigned_ids(ids.begin(), ids.end());
  ffi::Text text;
  tt_tokenizer_decode(handle_->raw, unsigned_ids.data(), unsigned_ids.size(), skip_special,
                      text.out());
  return text.string();
}

size_t Tokenizer::vocab_size() const { return tt_tokenizer_vocab_size(handle_->raw); }

std::optional<TokenId> Tokenizer::token_to_id(std::string_view token) const {
  const int64_t id = tt_tokenizer_token_to_id(handle_->raw, ffi::bytes(token));
  if (id < 0) return std::nullopt;
  return static_cast<TokenId>(id);
}

std::optional<std::string> Tokenizer::id_to_token(TokenId id) const {
  ffi::Text text;
  if (id < 0 || !tt_tokenizer_id_to_token(handle_->raw, static_cast<uint32_t>(id), text.out())) {
    return std::nullopt;
  }
  return text.string();
}

bool Tokenizer::is_special(TokenId id) const {
  return id >= 0 && tt_tokenizer_is_special(handle_->raw, static_cast<uint32_t>(id));
}

std::optional<std::string> Tokenizer::named_token(std::string_view name) const {
  const auto it = std::find_if(config_.named_tokens.begin(), config_.named_tokens.end(),
                               [&](const auto& token) { return token.first == name; });
  if (it == config_.named_tokens.end()) return std::nullopt;
  return it->second;
}

std::optional<TokenId> Tokenizer::named_token_id(std::string_view name) const {
  const auto text = named_token(name);
  return text ? token_to_id(*text) : std::nullopt;
}

}  // namespace triptych
