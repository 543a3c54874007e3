#include <charconv>

#include "text/tokenizer.h"

namespace triptych {
namespace {

/// A token given as a string or as an object with `content` (transformers' AddedToken).
Result<std::string> token_string(const JsonRef& value) {
  if (value.json().is_object()) return value.at("content").as_string();
  return value.as_string();
}

bool ends_with_token(std::string_view key) { return key.ends_with("_token"); }

/// Keeps the flags of a token that is given as an object.
void keep_flags(const JsonRef& value, TokenizerConfig& config) {
  if (value.json().is_object()) config.added_tokens.append(value.json());
}

/// added_tokens_decoder: {"32000": {"content": "<image>", ...}} becomes a list with ids.
Status read_added_tokens(const JsonRef& decoder, TokenizerConfig& config) {
  for (const auto& [key, value] : decoder.json().members()) {
    int64_t id = -1;
    const auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (code != std::errc() || end != key.data() + key.size() || id < 0 || id > INT32_MAX) {
      return decoder.error("\"" + key + "\" is not a token id");
    }
    const JsonRef entry = decoder.at(key);
    TRIPTYCH_RETURN_IF_ERROR(entry.at("content").as_string().status());
    Json token = value;
    token.set("id", Json::integer(id));
    config.added_tokens.append(std::move(token));
  }
  return Status::ok();
}

/// extra_special_tokens: names to strings (v4.45 and later) or a plain list.
Status read_extra_tokens(const JsonRef& extra, TokenizerConfig& config) {
  for (const auto& [name, value] : extra.json().members()) {
    TRIPTYCH_ASSIGN_OR_RETURN(std::string text, token_string(extra.at(name)));
    keep_flags(extra.at(name), config);
    bool known = false;
    for (auto& [known_name, known_text] : config.named_tokens) {
      if (known_name != name) continue;
      known_text = text;
      known = true;
    }
    if (!known) config.named_tokens.emplace_back(name, std::move(text));
  }
  for (size_t i = 0; i < extra.size(); ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(std::string text, token_string(extra.at(i)));
    keep_flags(extra.at(i), config);
    config.extra_tokens.push_back(std::move(text));
  }
  return Status::ok();
}

}  // namespace

Result<TokenizerConfig> parse_tokenizer_config(const Json& json, const std::string& file) {
  const JsonRef root(json, file);
  if (!json.is_object()) return root.error("expected a JSON object");
  TokenizerConfig config;
  config.added_tokens = Json::array();
  if (root.has("added_tokens_decoder")) {
    TRIPTYCH_RETURN_IF_ERROR(read_added_tokens(root.at("added_tokens_decoder"), config));
  }
  for (const auto& [key, value] : json.members()) {
    const bool is_token = value.is_string() || value.is_object();
    if (!ends_with_token(key) || !is_token) continue;
    TRIPTYCH_ASSIGN_OR_RETURN(std::string text, token_string(root.at(key)));
    keep_flags(root.at(key), config);
    config.named_tokens.emplace_back(key, std::move(text));
  }
  for (const char* key : {"extra_special_tokens", "additional_special_tokens"}) {
    if (root.has(key)) TRIPTYCH_RETURN_IF_ERROR(read_extra_tokens(root.at(key), config));
  }
  for (const auto& [key, flag] :
       {std::pair{"add_bos_token", &config.add_bos}, std::pair{"add_eos_token", &config.add_eos}}) {
    if (!root.has(key)) continue;
    TRIPTYCH_ASSIGN_OR_RETURN(*flag, root.at(key).as_bool());
  }
  // transformers writes 1e30 for "no limit".
  TRIPTYCH_ASSIGN_OR_RETURN(const double longest, root.get_number("model_max_length", 0));
  if (longest >= 1 && longest < 1e12) config.model_max_length = static_cast<int64_t>(longest);
  return config;
}

}  // namespace triptych
