#include "request/request.h"

#include <fmt/format.h>

#include <cmath>

namespace triptych {

Status validate(const SamplingParams& params) {
  const auto bad = [](const char* field, double value, const char* range) {
    return invalid_argument(fmt::format("{} is {}; it must be {}", field, value, range));
  };
  if (!std::isfinite(params.temperature) || params.temperature < 0 || params.temperature > 100) {
    return bad("temperature", params.temperature, "between 0 and 100");
  }
  if (params.top_k < -1) {
    return bad("top_k", static_cast<double>(params.top_k), "at least 1, or 0 or -1 for off");
  }
  if (!(params.top_p > 0 && params.top_p <= 1)) {
    return bad("top_p", params.top_p, "above 0 and at most 1");
  }
  if (!(params.min_p >= 0 && params.min_p <= 1)) {
    return bad("min_p", params.min_p, "between 0 and 1");
  }
  if (!(params.repetition_penalty > 0) || !std::isfinite(params.repetition_penalty)) {
    return bad("repetition_penalty", params.repetition_penalty, "above 0");
  }
  if (params.max_tokens < 0) {
    return bad("max_tokens", static_cast<double>(params.max_tokens), "at least 0");
  }
  return Status::ok();
}

std::optional<double> Usage::ttft_ms() const {
  if (drawn_tokens == 0) return std::nullopt;
  return prep_ms + encode_ms + prefill_ms;
}

std::optional<double> Usage::decode_tokens_per_s() const {
  if (decode_steps() == 0 || decode_ms <= 0) return std::nullopt;
  return 1e3 * static_cast<double>(decode_steps()) / decode_ms;
}

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "";
}

}  // namespace triptych
