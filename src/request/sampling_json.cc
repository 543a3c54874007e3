#include "request/sampling_json.h"

namespace triptych {

std::span<const std::string_view> sampling_fields() {
  static constexpr std::string_view kFields[] = {"max_tokens",
                                                 "min_tokens",
                                                 "temperature",
                                                 "top_k",
                                                 "top_p",
                                                 "min_p",
                                                 "typical_p",
                                                 "repetition_penalty",
                                                 "presence_penalty",
                                                 "frequency_penalty",
                                                 "seed",
                                                 "n",
                                                 "stop",
                                                 "ignore_eos"};
  return kFields;
}

Status read_sampling(const JsonRef& json, SamplingParams& out) {
  TRIPTYCH_ASSIGN_OR_RETURN(out.max_tokens, json.get_int("max_tokens", out.max_tokens));
  TRIPTYCH_ASSIGN_OR_RETURN(out.temperature, json.get_number("temperature", out.temperature));
  TRIPTYCH_ASSIGN_OR_RETURN(out.top_k, json.get_int("top_k", out.top_k));
  TRIPTYCH_ASSIGN_OR_RETURN(out.top_p, json.get_number("top_p", out.top_p));
  TRIPTYCH_ASSIGN_OR_RETURN(out.min_p, json.get_number("min_p", out.min_p));
  TRIPTYCH_ASSIGN_OR_RETURN(out.repetition_penalty,
                            json.get_number("repetition_penalty", out.repetition_penalty));
  TRIPTYCH_ASSIGN_OR_RETURN(out.typical_p, json.get_number("typical_p", out.typical_p));
  TRIPTYCH_ASSIGN_OR_RETURN(out.presence_penalty,
                            json.get_number("presence_penalty", out.presence_penalty));
  TRIPTYCH_ASSIGN_OR_RETURN(out.frequency_penalty,
                            json.get_number("frequency_penalty", out.frequency_penalty));
  TRIPTYCH_ASSIGN_OR_RETURN(out.min_tokens, json.get_int("min_tokens", out.min_tokens));
  TRIPTYCH_ASSIGN_OR_RETURN(out.n, json.get_int("n", out.n));
  TRIPTYCH_ASSIGN_OR_RETURN(out.ignore_eos, json.get_bool("ignore_eos", out.ignore_eos));
  if (json.has("seed")) {
    TRIPTYCH_ASSIGN_OR_RETURN(const int64_t seed, json.at("seed").as_int());
    out.seed = static_cast<uint64_t>(seed);
  }
  const JsonRef stop = json.at("stop");
  if (stop.json().is_string()) {
    out.stop = {stop.json().string_value()};
  } else if (!stop.is_null()) {
    if (!stop.json().is_array()) return stop.error("expected a text or a list of texts");
    for (size_t i = 0; i < stop.size(); ++i) {
      TRIPTYCH_ASSIGN_OR_RETURN(std::string text, stop.at(i).as_string());
      out.stop.push_back(std::move(text));
    }
  }
  return Status::ok();
}

}  // namespace triptych
