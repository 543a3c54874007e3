#include "server/openai/chat_request.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "request/sampling_json.h"
#include "server/openai/data_uri.h"
#include "server/openai/error.h"

namespace triptych::openai {
namespace {

constexpr auto kFields = std::to_array<std::string_view>({"messages",
                                                          "model",
                                                          "stream",
                                                          "stream_options",
                                                          "max_tokens",
                                                          "max_completion_tokens",
                                                          "min_tokens",
                                                          "temperature",
                                                          "top_k",
                                                          "top_p",
                                                          "min_p",
                                                          "typical_p",
                                                          "repetition_penalty",
                                                          "presence_penalty",
                                                          "frequency_penalty",
                                                          "logit_bias",
                                                          "seed",
                                                          "n",
                                                          "stop",
                                                          "ignore_eos",
                                                          "logprobs",
                                                          "top_logprobs",
                                                          "response_format"});

// What clients send that changes nothing of an answer here.
constexpr auto kIgnored = std::to_array<std::string_view>(
    {"user", "metadata", "store", "service_tier", "prompt_cache_key", "safety_identifier",
     "reasoning_effort", "verbosity", "parallel_tool_calls"});

// Fields of what is not there yet, and the values that ask for nothing of it.
bool asks_for_nothing(std::string_view field, const Json& value) {
  if (value.is_null()) return true;
  if (field == "tools") return value.is_array() && value.elements().empty();
  if (field == "tool_choice") return value.is_string() && value.string_value() != "required";
  if (field == "modalities") {
    return value.is_array() && value.elements().size() == 1 &&
           value.elements()[0].string_value() == "text";
  }
  return false;
}

template <size_t N>
bool is_in(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status check_fields(const JsonRef& body) {
  for (const Json::Member& member : body.json().members()) {
    if (is_in(kFields, member.first) || is_in(kIgnored, member.first)) continue;
    if (asks_for_nothing(member.first, member.second)) continue;
    return body.at(member.first)
        .error(fmt::format("this field or value is not supported; known fields are {}",
                           fmt::join(kFields, ", ")));
  }
  return Status::ok();
}

/// A path as the layers below get it for their messages.
std::string part_name(const JsonRef& part) {
  return part.path().substr(std::min(part.path().size(), kBody.size() + 2));
}

Status read_image(const JsonRef& part, Request& request, RequestMessage& message) {
  const JsonRef image = part.at("image_url");
  const JsonRef url = image.json().is_string() ? image : image.at("url");
  if (!url.json().is_string()) return url.error("expected a data URI");
  const std::string& text = url.json().string_value();
  if (!is_data_uri(text)) {
    return url.error(
        "send the picture itself as data:image/png;base64,...: this server fetches nothing from "
        "other hosts or its own files");
  }
  Result<DataUri> uri = parse_data_uri(text);
  if (!uri.is_ok()) return url.error(uri.status().message());
  message.parts.push_back({{}, request.media.size()});
  request.media.push_back({Modality::kImage, part_name(url),
                           std::make_shared<const std::string>(std::move(uri->bytes))});
  return Status::ok();
}

Status read_part(const JsonRef& part, Request& request, RequestMessage& message) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string type, part.at("type").as_string());
  if (type == "text") {
    TRIPTYCH_ASSIGN_OR_RETURN(std::string text, part.at("text").as_string());
    message.parts.push_back({std::move(text), std::nullopt});
    return Status::ok();
  }
  if (type == "image_url") return read_image(part, request, message);
  for (const std::string_view other : {"input_audio", "audio_url", "video_url", "file"}) {
    if (type != other) continue;
    return {StatusCode::kUnsupported,
            part.at("type").error(fmt::format("no model here takes {} parts", type)).message()};
  }
  return part.at("type").error("use \"text\" or \"image_url\"");
}

Status read_role(const JsonRef& json, RequestMessage& message) {
  TRIPTYCH_ASSIGN_OR_RETURN(message.role, json.at("role").as_string());
  if (message.role == "developer") message.role = "system";  // its name since 2024
  for (const std::string_view role : {"system", "user", "assistant"}) {
    if (message.role == role) return Status::ok();
  }
  return json.at("role").error("use \"system\", \"developer\", \"user\" or \"assistant\"");
}

Status read_message(const JsonRef& json, Request& request, size_t& parts_left) {
  if (!json.json().is_object()) return json.error("expected a message: {\"role\", \"content\"}");
  RequestMessage message;
  TRIPTYCH_RETURN_IF_ERROR(read_role(json, message));
  const JsonRef content = json.at("content");
  if (content.json().is_string()) {
    message.parts.push_back({content.json().string_value(), std::nullopt});
  } else if (content.json().is_array()) {
    if (content.size() > parts_left) return content.error("the request has too many parts");
    parts_left -= content.size();
    for (size_t i = 0; i < content.size(); ++i) {
      TRIPTYCH_RETURN_IF_ERROR(read_part(content.at(i), request, message));
    }
  } else {
    return content.error("expected a text or a list of parts");
  }
  request.messages.push_back(std::move(message));
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

Status read_stream_options(const JsonRef& body, ChatCall& out) {
  TRIPTYCH_ASSIGN_OR_RETURN(out.stream, body.get_bool("stream", false));
  const JsonRef options = body.at("stream_options");
  if (options.is_null()) return Status::ok();
  if (!out.stream) return options.error("goes with \"stream\": true alone");
  TRIPTYCH_ASSIGN_OR_RETURN(out.include_usage, options.get_bool("include_usage", false));
  return Status::ok();
}

Status read_fields(const JsonRef& body, const ChatLimits& limits, SamplingParams& out) {
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

Status read_messages(const JsonRef& messages, const ChatLimits& limits, Request& request) {
  if (!messages.json().is_array() || messages.size() == 0) {
    return messages.error("expected a list of messages that is not empty");
  }
  if (messages.size() > limits.max_parts) return messages.error("too many messages");
  size_t parts_left = limits.max_parts - messages.size();
  for (size_t i = 0; i < messages.size(); ++i) {
    TRIPTYCH_RETURN_IF_ERROR(read_message(messages.at(i), request, parts_left));
  }
  if (request.media.size() > limits.max_media) {
    return messages.error(fmt::format("the request has {} pictures; it may have {}",
                                      request.media.size(), limits.max_media));
  }
  return Status::ok();
}

Result<ChatCall> read_chat_call(const JsonRef& body, const SamplingParams& defaults,
                                const ChatLimits& limits) {
  if (!body.json().is_object()) return body.error("expected a JSON object");
  TRIPTYCH_RETURN_IF_ERROR(check_fields(body));
  ChatCall out;
  out.request.sampling = defaults;
  TRIPTYCH_RETURN_IF_ERROR(read_fields(body, limits, out.request.sampling));
  TRIPTYCH_RETURN_IF_ERROR(read_stream_options(body, out));
  TRIPTYCH_RETURN_IF_ERROR(read_messages(body.at("messages"), limits, out.request));
  return out;
}

}  // namespace triptych::openai
