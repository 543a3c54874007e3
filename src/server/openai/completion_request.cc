#include "server/openai/completion_request.h"

namespace triptych::openai {
namespace {

constexpr std::string_view kFields[] = {"prompt", "echo", "suffix", "best_of"};
constexpr int64_t kDefaultMaxTokens = 16;

Result<std::string> read_prompt(const JsonRef& prompt) {
  if (prompt.json().is_string()) return prompt.json().string_value();
  if (!prompt.json().is_array()) return prompt.error("expected a text");
  if (prompt.size() != 1) return prompt.error("expected one prompt; send a request for each");
  if (!prompt.at(0).json().is_string()) {
    return prompt.at(0).error("expected a text: prompts of token ids are not supported");
  }
  return prompt.at(0).json().string_value();
}

/// What other servers do with these; nothing is left out in silence.
Status check_unsupported(const JsonRef& body, const Call& call) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string suffix, body.get_string("suffix", ""));
  if (!suffix.empty()) {
    return body.at("suffix").error("filling in before a suffix is not supported");
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t best_of,
                            body.get_int("best_of", call.request.sampling.n));
  if (best_of != call.request.sampling.n) {
    return body.at("best_of").error("only as many answers are drawn as `n` says");
  }
  if (call.request.sampling.logprobs) {
    return body.at("logprobs").error("logprobs are there for chat completions only");
  }
  return Status::ok();
}

}  // namespace

Result<Call> read_completion_call(const JsonRef& body, const SamplingParams& defaults,
                                  const CallLimits& limits) {
  Call out;
  out.request.sampling = defaults;
  if (out.request.sampling.max_tokens == 0) out.request.sampling.max_tokens = kDefaultMaxTokens;
  TRIPTYCH_RETURN_IF_ERROR(read_common_fields(body, kFields, limits, out));
  TRIPTYCH_RETURN_IF_ERROR(check_unsupported(body, out));
  TRIPTYCH_ASSIGN_OR_RETURN(out.request.raw_prompt, read_prompt(body.at("prompt")));
  if (out.request.raw_prompt.empty()) return body.at("prompt").error("the prompt is empty");
  TRIPTYCH_ASSIGN_OR_RETURN(const bool echo, body.get_bool("echo", false));
  if (echo) out.echo = out.request.raw_prompt;
  return out;
}

}  // namespace triptych::openai
