#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/tokenizer.h"

namespace triptych {

/// The `tokenizer.*` metadata of a GGUF file, as plain values.
struct GgufTokenizerMetadata {
  std::string model;                 ///< tokenizer.ggml.model: "gpt2" or "llama"
  std::string pre;                   ///< tokenizer.ggml.pre: "smollm", "llama-bpe", "qwen2", ...
  std::vector<std::string> tokens;   ///< tokenizer.ggml.tokens
  std::vector<float> scores;         ///< tokenizer.ggml.scores, for "llama"
  std::vector<int32_t> token_types;  ///< tokenizer.ggml.token_type; 3 control, 4 user, 6 byte
  std::vector<std::string> merges;   ///< tokenizer.ggml.merges ("a b"), for "gpt2"
  std::optional<int64_t> bos_id, eos_id, unknown_id, padding_id;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
};

/// A tokenizer in Hugging Face's form, made from GGUF metadata.
struct GgufTokenizer {
  std::string tokenizer_json;
  TokenizerConfig config;
};

/// Builds the tokenizer.json text that gives the ids llama.cpp and transformers give for this
/// metadata. kUnsupported for a model or pre-tokenizer that we do not know (it lists the known
/// ones), kDataLoss naming the key for arrays that do not fit each other.
Result<GgufTokenizer> build_gguf_tokenizer(const GgufTokenizerMetadata& metadata);

}  // namespace triptych
