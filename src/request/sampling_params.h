#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace triptych {

/// What a grammar is written in. kChoice takes a JSON array of strings.
enum class GrammarKind : uint8_t { kJsonSchema, kRegex, kLark, kChoice };

/// A grammar that an answer must follow.
struct GrammarSpec {
  GrammarKind kind = GrammarKind::kJsonSchema;
  std::string text;
  std::string source;  ///< file, flag or JSON path it came from, for messages
};

/// How the next token is drawn. The defaults are greedy. Ids are those of the model's vocabulary.
struct SamplingParams {
  double temperature = 0;  ///< 0: the most likely token, whatever seed, top_k and the like say
  int64_t top_k = 0;       ///< 0 or -1: off
  double top_p = 1;        ///< in (0, 1]; 1: off
  double min_p = 0;        ///< in [0, 1]; 0: off
  double typical_p = 1;    ///< in (0, 1]; 1: off
  double repetition_penalty = 1;  ///< above 0; 1: off; tokens of the prompt count too
  double presence_penalty = 0;    ///< in [-2, 2]; tokens of the answer alone count
  double frequency_penalty = 0;   ///< in [-2, 2]; tokens of the answer alone count
  std::vector<std::pair<int32_t, double>> logit_bias;  ///< id, added to its logit: in [-100, 100]
  std::optional<uint64_t> seed;   ///< same seed, same answer; without one every answer has its own
  int64_t n = 1;                  ///< answers to the same prompt; each draws from its own stream
  bool logprobs = false;          ///< log-probability of every token of the answer
  int64_t top_logprobs = 0;       ///< and of this many most likely ones beside it: 0 to 20
  std::vector<std::string> stop;  ///< stop strings, never part of the answer
  std::vector<int32_t>
      stop_token_ids;       ///< end the answer as the end token does, also with ignore_eos
  int64_t min_tokens = 0;   ///< no end token, stop id or stop string before as many
  int64_t max_tokens = 0;   ///< 0: as many as the context holds
  bool ignore_eos = false;  ///< the end token is a token like any other
  std::optional<GrammarSpec> grammar;
};

/// What validate() knows beside the fields.
struct SamplingLimits {
  int64_t max_n = 128;           ///< highest `n` that is served
  int64_t max_logit_bias = 300;  ///< entries of `logit_bias`, as in OpenAI's API
  int64_t vocab_size = 0;  ///< ids must be below; 0: not known here, only negative ids are bad
};

/// kInvalidArgument naming the field and the allowed range. Not-a-number and infinity are in no
/// range.
Status validate(const SamplingParams& params, const SamplingLimits& limits = {});

}  // namespace triptych
