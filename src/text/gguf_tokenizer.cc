#include "text/gguf_tokenizer.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "text/text_guard.h"

namespace triptych {
namespace {

constexpr int32_t kControlType = 3;
constexpr int32_t kUserDefinedType = 4;
/// Longest token whose cuts into two are looked up; real ones have some dozens of bytes.
constexpr size_t kMaxPieceBytes = 512;

/// How a byte-level vocabulary splits text before its merges, as the checkpoints of that name do in
/// their tokenizer.json. llama.cpp names these in tokenizer.ggml.pre.
struct PreTokenizer {
  std::string_view name;
  std::string_view split;  ///< regular expression; empty for GPT-2's own
  bool single_digits = false;
  bool ignore_merges = false;  ///< a word that is a token whole is taken whole
  bool nfc = false;
  bool bos_by_default = false;
};

constexpr std::string_view kLlama3Split =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Split =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekkenSplit =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr PreTokenizer kPreTokenizers[] = {
    {.name = "default", .split = {}},
    {.name = "gpt-2", .split = {}},
    {.name = "smollm", .split = {}, .single_digits = true},
    {.name = "starcoder", .split = {}, .single_digits = true},
    {.name = "refact", .split = {}, .single_digits = true},
    {.name = "command-r", .split = {}, .single_digits = true},
    {.name = "llama-bpe", .split = kLlama3Split, .ignore_merges = true, .bos_by_default = true},
    {.name = "llama3", .split = kLlama3Split, .ignore_merges = true, .bos_by_default = true},
    {.name = "llama-v3", .split = kLlama3Split, .ignore_merges = true, .bos_by_default = true},
    {.name = "qwen2", .split = kQwen2Split, .nfc = true},
    {.name = "deepseek-r1-qwen", .split = kQwen2Split, .nfc = true, .bos_by_default = true},
    {.name = "tekken", .split = kTekkenSplit, .ignore_merges = true, .bos_by_default = true},
};

Result<PreTokenizer> find_pre_tokenizer(const std::string& name) {
  const std::string_view wanted = name.empty() ? std::string_view("default") : name;
  std::string known;
  for (const PreTokenizer& pre : kPreTokenizers) {
    if (pre.name == wanted) return pre;
    known += known.empty() ? "" : ", ";
    known += pre.name;
  }
  return unsupported("tokenizer.ggml.pre \"" + name + "\" is not known; known are " + known);
}

std::string quoted(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  return out += '"';
}

std::string entry(std::string_view key, size_t index) {
  return "tokenizer.ggml." + std::string(key) + "[" + std::to_string(index) + "]";
}

Status check(const GgufTokenizerMetadata& data) {
  if (data.tokens.empty()) return data_loss("tokenizer.ggml.tokens is missing or empty");
  const auto fits = [&](std::string_view key, size_t n) {
    if (n == 0 || n == data.tokens.size()) return Status::ok();
    return data_loss("tokenizer.ggml." + std::string(key) + " has " + std::to_string(n) +
                     " entries for " + std::to_string(data.tokens.size()) + " tokens");
  };
  TRIPTYCH_RETURN_IF_ERROR(fits("token_type", data.token_types.size()));
  TRIPTYCH_RETURN_IF_ERROR(fits("scores", data.scores.size()));
  for (size_t i = 0; i < data.tokens.size(); ++i) {
    if (find_invalid_utf8(data.tokens[i]) != std::string_view::npos) {
      return data_loss(entry("tokens", i) + " is not valid UTF-8");
    }
  }
  for (size_t i = 0; i < data.merges.size(); ++i) {
    const std::string& merge = data.merges[i];
    const size_t space = merge.find(' ');
    if (space == std::string::npos || merge.find(' ', space + 1) != std::string::npos ||
        find_invalid_utf8(merge) != std::string_view::npos) {
      return data_loss(entry("merges", i) + " is not two tokens with a space between");
    }
  }
  const std::pair<const char*, std::optional<int64_t>> ids[] = {
      {"bos_token_id", data.bos_id},
      {"eos_token_id", data.eos_id},
      {"unknown_token_id", data.unknown_id},
      {"padding_token_id", data.padding_id}};
  for (const auto& [key, id] : ids) {
    if (id && (*id < 0 || *id >= static_cast<int64_t>(data.tokens.size()))) {
      return data_loss("tokenizer.ggml." + std::string(key) + " is " + std::to_string(*id) +
                       ", outside the " + std::to_string(data.tokens.size()) + " tokens");
    }
  }
  return Status::ok();
}

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// The merges that a SentencePiece vocabulary implies: a token may be made from any two that spell
/// it, the best score first (after transformers' generate_merges).
std::vector<std::string> merges_from_scores(const GgufTokenizerMetadata& data) {
  struct Merge {
    float score;
    size_t left_length, right_length;
    std::string text;
  };
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t i = 0; i < data.tokens.size(); ++i) ids[data.tokens[i]] = i;
  std::vector<Merge> merges;
  for (size_t i = 0; i < data.tokens.size(); ++i) {
    const std::string_view token = data.tokens[i];
    if (ids[token] != i || token.size() > kMaxPieceBytes) continue;
    std::vector<std::pair<std::pair<size_t, size_t>, size_t>> cuts;  // ids of both sides, place
    for (size_t at = 1; at < token.size(); ++at) {
      if ((token[at] & 0xC0) == 0x80) continue;
      const auto left = ids.find(token.substr(0, at));
      const auto right = ids.find(token.substr(at));
      if (left == ids.end() || right == ids.end()) continue;
      cuts.push_back({{left->second, right->second}, at});
    }
    std::sort(cuts.begin(), cuts.end());
    for (const auto& [sides, at] : cuts) {
      const std::string_view left = token.substr(0, at);
      const std::string_view right = token.substr(at);
      merges.push_back({data.scores[i], count_characters(left), count_characters(right),
                        std::string(left) + " " + std::string(right)});
    }
  }
  std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.left_length != b.left_length) return a.left_length > b.left_length;
    return a.right_length > b.right_length;
  });
  std::vector<std::string> texts;
  texts.reserve(merges.size());
  for (Merge& merge : merges) texts.push_back(std::move(merge.text));
  return texts;
}

/// The member "added_tokens": control tokens are special, user-defined ones are not.
std::string added_tokens_text(const GgufTokenizerMetadata& data) {
  std::string out = "[";
  for (size_t i = 0; i < data.token_types.size(); ++i) {
    const int32_t type = data.token_types[i];
    if ((type != kControlType && type != kUserDefinedType) || data.tokens[i].empty()) continue;
    out += out.size() > 1 ? "," : "";
    out += "{\"id\":" + std::to_string(i) + ",\"content\":" + quoted(data.tokens[i]) +
           ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false," +
           "\"special\":" + (type == kControlType ? "true}" : "false}");
  }
  return out + "]";
}

struct BpeOptions {
  std::string unknown = "null";
  bool byte_fallback = false;
  bool ignore_merges = false;
};

std::string bpe_text(const GgufTokenizerMetadata& data, const std::vector<std::string>& merges,
                     const BpeOptions& options) {
  std::string out = "{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":" + options.unknown;
  out += ",\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null";
  out += options.byte_fallback ? ",\"fuse_unk\":true,\"byte_fallback\":true"
                               : ",\"fuse_unk\":false,\"byte_fallback\":false";
  out += options.ignore_merges ? ",\"ignore_merges\":true" : ",\"ignore_merges\":false";
  out += ",\"vocab\":{";
  for (size_t i = 0; i < data.tokens.size(); ++i) {
    out += (i > 0 ? "," : "") + quoted(data.tokens[i]) + ":" + std::to_string(i);
  }
  out += "},\"merges\":[";
  for (size_t i = 0; i < merges.size(); ++i) out += (i > 0 ? "," : "") + quoted(merges[i]);
  return out + "]}";
}

/// tokenizer.json from its members' texts.
std::string assemble(const std::string& added, const std::string& normalizer,
                     const std::string& pre_tokenizer, const std::string& decoder,
                     const std::string& model) {
  return "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":" + added +
         ",\"normalizer\":" + normalizer + ",\"pre_tokenizer\":" + pre_tokenizer +
         ",\"post_processor\":null,\"decoder\":" + decoder + ",\"model\":" + model + "}";
}

std::string byte_level_text(bool add_prefix_space, bool use_regex) {
  return std::string("{\"type\":\"ByteLevel\",\"add_prefix_space\":") +
         (add_prefix_space ? "true" : "false") +
         ",\"trim_offsets\":true,\"use_regex\":" + (use_regex ? "true}" : "false}");
}

std::string byte_level_json(const GgufTokenizerMetadata& data, const PreTokenizer& pre) {
  const bool prefix = data.add_space_prefix.value_or(false);
  std::string steps = byte_level_text(prefix, pre.split.empty());
  if (!pre.split.empty()) {
    steps = "{\"type\":\"Split\",\"pattern\":{\"Regex\":" + quoted(pre.split) +
            "},\"behavior\":\"Isolated\",\"invert\":false}," + steps;
  } else if (pre.single_digits) {
    steps = "{\"type\":\"Digits\",\"individual_digits\":true}," + steps;
  }
  return assemble(added_tokens_text(data), pre.nfc ? "{\"type\":\"NFC\"}" : "null",
                  "{\"type\":\"Sequence\",\"pretokenizers\":[" + steps + "]}",
                  byte_level_text(false, true),
                  bpe_text(data, data.merges, {.ignore_merges = pre.ignore_merges}));
}

/// SentencePiece BPE: spaces become U+2581, unknown characters their bytes.
std::string sentencepiece_json(const GgufTokenizerMetadata& data) {
  const bool prefix = data.add_space_prefix.value_or(true);
  const std::string scheme = prefix ? "first" : "never";
  std::string decoders =
      "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\u2581\"},\"content\":\" \"},"
      "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}";
  if (prefix) decoders += ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}";
  BpeOptions options{.byte_fallback = true};
  if (data.unknown_id) options.unknown = quoted(data.tokens[static_cast<size_t>(*data.unknown_id)]);
  const auto merges = data.merges.empty() ? merges_from_scores(data) : data.merges;
  return assemble(added_tokens_text(data), "null",
                  "{\"type\":\"Metaspace\",\"replacement\":\"\u2581\",\"prepend_scheme\":\"" +
                      scheme + "\",\"split\":false}",
                  "{\"type\":\"Sequence\",\"decoders\":[" + decoders + "]}",
                  bpe_text(data, merges, options));
}

TokenizerConfig make_config(const GgufTokenizerMetadata& data, bool bos_by_default) {
  TokenizerConfig config;
  const std::pair<const char*, std::optional<int64_t>> names[] = {{"bos_token", data.bos_id},
                                                                  {"eos_token", data.eos_id},
                                                                  {"unk_token", data.unknown_id},
                                                                  {"pad_token", data.padding_id}};
  for (const auto& [name, id] : names) {
    if (id) config.named_tokens.emplace_back(name, data.tokens[static_cast<size_t>(*id)]);
  }
  config.add_bos = data.add_bos.value_or(bos_by_default);
  config.add_eos = data.add_eos.value_or(false);
  return config;
}

}  // namespace

Result<GgufTokenizer> build_gguf_tokenizer(const GgufTokenizerMetadata& metadata) {
  TRIPTYCH_RETURN_IF_ERROR(check(metadata));
  if (metadata.model == "gpt2") {
    TRIPTYCH_ASSIGN_OR_RETURN(const PreTokenizer pre, find_pre_tokenizer(metadata.pre));
    if (metadata.merges.empty()) return data_loss("tokenizer.ggml.merges is missing or empty");
    return GgufTokenizer{byte_level_json(metadata, pre), make_config(metadata, pre.bos_by_default)};
  }
  if (metadata.model == "llama") {
    if (metadata.scores.empty() && metadata.merges.empty()) {
      return data_loss("tokenizer.ggml.scores is missing or empty");
    }
    return GgufTokenizer{sentencepiece_json(metadata), make_config(metadata, true)};
  }
  return unsupported("tokenizer.ggml.model \"" + metadata.model +
                     "\" is not known; known are gpt2 and llama");
}

}  // namespace triptych
