#include "server/openai/chat_request.h"

#include <fmt/format.h>

#include "server/openai/data_uri.h"
#include "server/openai/tool_fields.h"

namespace triptych::openai {
namespace {

constexpr std::string_view kFields[] = {"messages", "tools", "tool_choice", "parallel_tool_calls"};

/// Where messages are read to.
struct Reading {
  const CallLimits& limits;
  Call& out;
  size_t parts_left;
};

/// Notes a media item that is to be fetched.
Status read_name(const JsonRef& url, Reading& reading) {
  if (reading.limits.sources == nullptr) {
    return url.error(
        "send the picture itself as data:image/png;base64,...: this server fetches nothing from "
        "other hosts or its own files");
  }
  const std::string& name = url.json().string_value();
  const Status status = reading.limits.sources->check(name);
  if (!status.is_ok()) return url.error(status.message());
  reading.out.named_media.push_back({reading.out.request.media.size(), name});
  return Status::ok();
}

Status read_image(const JsonRef& part, Reading& reading, RequestMessage& message) {
  const JsonRef image = part.at("image_url");
  const JsonRef url = image.json().is_string() ? image : image.at("url");
  if (!url.json().is_string()) return url.error("expected a data URI");
  const std::string& text = url.json().string_value();
  MediaItem item{Modality::kImage, part_name(url), nullptr};
  if (is_data_uri(text)) {
    Result<DataUri> uri = parse_data_uri(text);
    if (!uri.is_ok()) return url.error(uri.status().message());
    item.bytes = std::make_shared<const std::string>(std::move(uri->bytes));
  } else {
    TRIPTYCH_RETURN_IF_ERROR(read_name(url, reading));
  }
  message.parts.push_back({{}, reading.out.request.media.size()});
  reading.out.request.media.push_back(std::move(item));
  return Status::ok();
}

Status read_part(const JsonRef& part, Reading& reading, RequestMessage& message) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string type, part.at("type").as_string());
  if (type == "text") {
    TRIPTYCH_ASSIGN_OR_RETURN(std::string text, part.at("text").as_string());
    message.parts.push_back({std::move(text), std::nullopt});
    return Status::ok();
  }
  if (type == "image_url") return read_image(part, reading, message);
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
  for (const std::string_view role : {"system", "user", "assistant", "tool"}) {
    if (message.role == role) return Status::ok();
  }
  return json.at("role").error(
      "use \"system\", \"developer\", \"user\", \"assistant\" or \"tool\"");
}

Status read_message(const JsonRef& json, Reading& reading) {
  if (!json.json().is_object()) return json.error("expected a message: {\"role\", \"content\"}");
  RequestMessage message;
  TRIPTYCH_RETURN_IF_ERROR(read_role(json, message));
  TRIPTYCH_RETURN_IF_ERROR(read_message_calls(json, message));
  TRIPTYCH_ASSIGN_OR_RETURN(message.name, json.get_string("name", ""));
  const JsonRef content = json.at("content");
  if (content.json().is_string()) {
    message.parts.push_back({content.json().string_value(), std::nullopt});
  } else if (content.json().is_array()) {
    if (content.size() > reading.parts_left) {
      return content.error("the request has too many parts");
    }
    reading.parts_left -= content.size();
    for (size_t i = 0; i < content.size(); ++i) {
      TRIPTYCH_RETURN_IF_ERROR(read_part(content.at(i), reading, message));
    }
  } else if (message.tool_calls.is_null() || !content.is_null()) {
    return content.error("expected a text or a list of parts");
  }
  reading.out.request.messages.push_back(std::move(message));
  return Status::ok();
}

}  // namespace

Status read_messages(const JsonRef& messages, const CallLimits& limits, Call& out) {
  if (!messages.json().is_array() || messages.size() == 0) {
    return messages.error("expected a list of messages that is not empty");
  }
  if (messages.size() > limits.max_parts) return messages.error("too many messages");
  Reading reading{limits, out, limits.max_parts - messages.size()};
  for (size_t i = 0; i < messages.size(); ++i) {
    TRIPTYCH_RETURN_IF_ERROR(read_message(messages.at(i), reading));
  }
  if (out.request.media.size() > limits.max_media) {
    return messages.error(fmt::format("the request has {} pictures; it may have {}",
                                      out.request.media.size(), limits.max_media));
  }
  return Status::ok();
}

Result<Call> read_chat_call(const JsonRef& body, const SamplingParams& defaults,
                            const CallLimits& limits) {
  Call out;
  out.request.sampling = defaults;
  TRIPTYCH_RETURN_IF_ERROR(read_common_fields(body, kFields, limits, out));
  TRIPTYCH_RETURN_IF_ERROR(read_tools(body, limits, out));
  TRIPTYCH_RETURN_IF_ERROR(read_messages(body.at("messages"), limits, out));
  return out;
}

}  // namespace triptych::openai
