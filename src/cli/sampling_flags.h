#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "request/sampling_params.h"

namespace triptych::cli {

/// Sampling flags; unset ones keep what the checkpoint's generation config asks for.
struct SamplingFlags {
  std::optional<double> temperature, top_p, min_p, typical_p;
  std::optional<double> repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<int64_t> top_k, logprobs;
  std::optional<uint64_t> seed;
  int64_t min_tokens = 0;
  int64_t max_tokens = 0;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  std::vector<std::string> logit_bias;  ///< "ID=BIAS"
  bool ignore_eos = false;
  std::string json_schema_file;
  std::string regex;
  std::string lark_file;
  std::vector<std::string> choices;

  /// `defaults` with what the flags say. kInvalidArgument for a bias that is no "ID=BIAS" or more
  /// than one kind of grammar; an error of the file that holds the grammar.
  Result<SamplingParams> apply(SamplingParams defaults) const;

 private:
  Result<std::optional<GrammarSpec>> grammar() const;
};

}  // namespace triptych::cli
