#include "request/sampling_params.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

namespace triptych {
namespace {

Status bad(const std::string& field, double value, const char* range) {
  return invalid_argument(fmt::format("{} is {}; it must be {}", field, value, range));
}

Status check_integer(const char* field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return Status::ok();
  return invalid_argument(
      fmt::format("{} is {}; it must be between {} and {}", field, value, low, high));
}

Status check_id(const std::string& field, int64_t id, const SamplingLimits& limits) {
  if (id >= 0 && (limits.vocab_size <= 0 || id < limits.vocab_size)) return Status::ok();
  if (limits.vocab_size <= 0) {
    return invalid_argument(fmt::format("{}: {} is no token id; ids are 0 or above", field, id));
  }
  return invalid_argument(fmt::format("{}: {} is no token id; the model's are 0 to {}", field, id,
                                      limits.vocab_size - 1));
}

Status check_shape(const SamplingParams& p) {
  if (!(p.temperature >= 0 && p.temperature <= 100)) {
    return bad("temperature", p.temperature, "between 0 and 100");
  }
  if (p.top_k < -1) {
    return bad("top_k", static_cast<double>(p.top_k), "at least 1, or 0 or -1 for off");
  }
  if (!(p.top_p > 0 && p.top_p <= 1)) return bad("top_p", p.top_p, "above 0 and at most 1");
  if (!(p.min_p >= 0 && p.min_p <= 1)) return bad("min_p", p.min_p, "between 0 and 1");
  if (!(p.typical_p > 0 && p.typical_p <= 1)) {
    return bad("typical_p", p.typical_p, "above 0 and at most 1");
  }
  return Status::ok();
}

Status check_penalties(const SamplingParams& p, const SamplingLimits& limits) {
  if (!(p.repetition_penalty > 0) || !std::isfinite(p.repetition_penalty)) {
    return bad("repetition_penalty", p.repetition_penalty, "above 0");
  }
  for (const auto& [field, value] : {std::pair("presence_penalty", p.presence_penalty),
                                     std::pair("frequency_penalty", p.frequency_penalty)}) {
    if (!(value >= -2 && value <= 2)) return bad(field, value, "between -2 and 2");
  }
  if (static_cast<int64_t>(p.logit_bias.size()) > limits.max_logit_bias) {
    return invalid_argument(fmt::format("logit_bias has {} entries; it may have {}",
                                        p.logit_bias.size(), limits.max_logit_bias));
  }
  std::set<int32_t> biased;
  for (const auto& [id, bias] : p.logit_bias) {
    TRIPTYCH_RETURN_IF_ERROR(check_id("logit_bias", id, limits));
    if (!(bias >= -100 && bias <= 100)) {
      return bad(fmt::format("logit_bias of token {}", id), bias, "between -100 and 100");
    }
    if (!biased.insert(id).second) {
      return invalid_argument(fmt::format("logit_bias has token {} twice", id));
    }
  }
  return Status::ok();
}

Status check_ends(const SamplingParams& p, const SamplingLimits& limits) {
  if (p.max_tokens < 0) return bad("max_tokens", static_cast<double>(p.max_tokens), "at least 0");
  if (p.min_tokens < 0) return bad("min_tokens", static_cast<double>(p.min_tokens), "at least 0");
  if (p.max_tokens > 0 && p.min_tokens > p.max_tokens) {
    return invalid_argument(fmt::format("min_tokens is {}; it must be at most max_tokens, {}",
                                        p.min_tokens, p.max_tokens));
  }
  for (const std::string& stop : p.stop) {
    if (stop.empty()) return invalid_argument("stop has an empty string, which is everywhere");
  }
  for (int32_t id : p.stop_token_ids) {
    TRIPTYCH_RETURN_IF_ERROR(check_id("stop_token_ids", id, limits));
  }
  if (p.grammar && p.ignore_eos) {
    return invalid_argument(
        "ignore_eos does not go with a grammar: the grammar says where the answer ends");
  }
  return Status::ok();
}

}  // namespace

Status validate(const SamplingParams& params, const SamplingLimits& limits) {
  TRIPTYCH_RETURN_IF_ERROR(check_shape(params));
  TRIPTYCH_RETURN_IF_ERROR(check_penalties(params, limits));
  TRIPTYCH_RETURN_IF_ERROR(check_integer("n", params.n, 1, limits.max_n));
  TRIPTYCH_RETURN_IF_ERROR(check_integer("top_logprobs", params.top_logprobs, 0, 20));
  if (params.top_logprobs > 0 && !params.logprobs) {
    return invalid_argument(fmt::format("top_logprobs is {}; it must be 0 unless logprobs is true",
                                        params.top_logprobs));
  }
  return check_ends(params, limits);
}

}  // namespace triptych
