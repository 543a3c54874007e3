#pragma once

#include <string>
#include <vector>

#include "cli/sampling_flags.h"
#include "cli/session.h"

namespace triptych::cli {

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
