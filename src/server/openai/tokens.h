#pragma once

#include "base/json.h"
#include "prep/preprocessor.h"

namespace triptych::openai {

/// POST /tokenize, with vLLM's fields: of {"prompt", "add_special_tokens", "return_token_strs"} or
/// {"messages"} the ids that the decoder would see, those of pictures too: {count, max_model_len,
/// tokens, token_strs}. No pixel is decoded.
Result<Json> tokenize(const JsonRef& body, const Preprocessor& prep, int64_t context_tokens);

/// POST /detokenize: the text of {"tokens"}, special tokens spelled out: {prompt}.
Result<Json> detokenize(const JsonRef& body, const Tokenizer& tokenizer);

}  // namespace triptych::openai
