#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/session.h"

namespace triptych::cli {

/// Sampling flags; unset ones keep what the checkpoint's generation config asks for.
struct SamplingFlags {
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<int64_t> top_k;
  std::optional<uint64_t> seed;
  int64_t max_tokens = 0;
  std::vector<std::string> stop;
  bool ignore_eos = false;

  SamplingParams apply(SamplingParams defaults) const;
};

struct ChatOptions {
  SessionOptions session;
  SamplingFlags sampling;
  std::vector<std::string> images;
  std::string system;
  std::vector<std::string> prompt;  ///< words of the command line
  bool json = false;
  bool stats = false;
  bool raw = false;  ///< the prompt as it is, without a chat template
};

/// `triptych chat`: one answer when there is a prompt (arguments or a pipe), else a conversation.
Status run_chat(const ChatOptions& options);

/// One line of figures: "576 image tokens of 590, TTFT 41 ms, 210 tokens/s, peak memory 61 MB";
/// without those that no step of the answer measured.
std::string figures_line(const Usage& usage);

}  // namespace triptych::cli
