#include "server/openai/call_fields.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "request/sampling_json.h"
#include "server/openai/error.h"

namespace triptych::openai {
namespace {

// Beside the sampling fields.
constexpr std::string_view kCommon[] = {
    "model",      "stream",   "stream_options", "max_completion_tokens",
    "logit_bias", "logprobs", "top_logprobs",   "response_format",
    "timings"};

// What clients send that changes nothing of an answer here.
constexpr std::string_view kIgnored[] = {"user",
                                         "metadata",
                                         "store",
                                         "service_tier",
                                         "prompt_cache_key",
                                         "safety_identifier",
                                         "reasoning_effort",
                                         "verbosity"};

// Fields of what is not there yet, and the values that ask for nothing of it.
bool asks_for_nothing(std::string_view field, const Json& value) {
  if (value.is_null()) return true;
  if (field == "modalities") {
    return value.is_array() && value.elements().size() == 1 &&
           value.elements()[0].string_value() == "text";
  }
  return false;
}

bool is_in(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status check_fields(const JsonRef& body, std::span<const std::string_view> own) {
  for (const Json::Member& member : body.json().members()) {
    if (is_in(own, member.first) || is_in(kCommon, member.first)) continue;
    if (is_in(sampling_fields(), member.first)) continue;
    if (is_in(kIgnored, member.first)) continue;
    if (asks_for_nothing(member.first, member.second)) continue;
    return body.at(member.first)
        .error(fmt::format("this field or value is not supported; known fields are {}, {}, {}",
                           fmt::join(own, ", "), fmt::join(kCommon, ", "),
                           fmt::join(sampling_fields(), ", ")));
  }
  return Status::ok();
}

Status read_logit_bias(const JsonRef& json, SamplingParams& out) {
  if (json.is_null()) return Status::ok();
  if (!json.json().is_object()) return json.error("expected an object of token ids and biases");
  for (const auto& [key, value] : json.json().members()) {
    int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size()) {
      return json.error(fmt::format("\"{}\" is no token id", key));
    }
    if (!value.is_number()) return json.error(fmt::format("the bias of {} is no number", key));
    out.logit_bias.emplace_back(id, value.number_value());
  }
  return Status::ok();
}

Status read_response_format(const JsonRef& json, SamplingParams& out) {
  if (json.is_null()) return Status::ok();
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string type, json.at("type").as_string());
  if (type == "text") return Status::ok();
  GrammarSpec grammar{.kind = GrammarKind::kJsonSchema, .text = {}, .source = "response_format"};
  if (type == "json_object") {
    grammar.text = R"({"type": "object"})";
  } else if (type == "json_schema") {
    const JsonRef schema = json.at("json_schema").at("schema");
    if (!schema.json().is_object()) return schema.error("expected a JSON schema");
    grammar.text = schema.json().dump();
    grammar.source = part_name(schema);
  } else {
    return json.at("type").error("use \"text\", \"json_object\" or \"json_schema\"");
  }
  out.grammar = std::move(grammar);
  return Status::ok();
}

Status read_stream_options(const JsonRef& body, Call& out) {
  TRIPTYCH_ASSIGN_OR_RETURN(out.stream, body.get_bool("stream", false));
  TRIPTYCH_ASSIGN_OR_RETURN(out.timings, body.get_bool("timings", false));
  const JsonRef options = body.at("stream_options");
  if (!options.is_null()) {
    if (!out.stream) return options.error("goes with \"stream\": true alone");
    TRIPTYCH_ASSIGN_OR_RETURN(out.include_usage, options.get_bool("include_usage", false));
  }
  if (out.stream && out.timings && !out.include_usage) {
    return body.at("timings").error(
        "they come with the usage: a stream needs \"stream_options\": {\"include_usage\": true}");
  }
  return Status::ok();
}

Status read_sampling_fields(const JsonRef& body, const CallLimits& limits, SamplingParams& out) {
  TRIPTYCH_RETURN_IF_ERROR(read_sampling(body, out));
  for (const char* field : {"max_tokens", "max_completion_tokens"}) {  // the second is its new name
    if (!body.has(field)) continue;
    TRIPTYCH_ASSIGN_OR_RETURN(out.max_tokens,
                              body.get_int_in(field, 0, 1, std::numeric_limits<int32_t>::max()));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(out.logprobs, body.get_bool("logprobs", false));
  TRIPTYCH_ASSIGN_OR_RETURN(out.top_logprobs, body.get_int("top_logprobs", 0));
  TRIPTYCH_RETURN_IF_ERROR(read_logit_bias(body.at("logit_bias"), out));
  TRIPTYCH_RETURN_IF_ERROR(read_response_format(body.at("response_format"), out));
  return validate(out, {.max_n = limits.max_n});
}

}  // namespace

Result<std::string> read_model_name(const JsonRef& body) {
  if (!body.json().is_object()) return body.error("expected a JSON object");
  return body.at("model").as_string();
}

Status read_common_fields(const JsonRef& body, std::span<const std::string_view> own,
                          const CallLimits& limits, Call& out) {
  if (!body.json().is_object()) return body.error("expected a JSON object");
  TRIPTYCH_RETURN_IF_ERROR(check_fields(body, own));
  TRIPTYCH_RETURN_IF_ERROR(read_sampling_fields(body, limits, out.request.sampling));
  return read_stream_options(body, out);
}

std::string part_name(const JsonRef& part) {
  return part.path().substr(std::min(part.path().size(), kBody.size() + 2));
}

}  // namespace triptych::openai
