#include "request/request.h"

namespace triptych {

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
