#include "cli/request_json.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "cli/session.h"
#include "request/sampling_json.h"

namespace triptych::cli {
namespace {

Status read_part(const JsonRef& part, const std::string& folder, Request& request,
                 RequestMessage& message) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string type, part.at("type").as_string());
  if (type == "text") {
    TRIPTYCH_ASSIGN_OR_RETURN(std::string text, part.at("text").as_string());
    message.parts.push_back({std::move(text), std::nullopt});
    return Status::ok();
  }
  if (type != "image") return part.at("type").error("use \"text\" or \"image\"");
  const Result<std::string> path = part.at("path").as_string();
  if (!path.is_ok()) return path.status();
  Result<MediaItem> item = load_media(path->starts_with('/') ? *path : folder + "/" + *path);
  if (!item.is_ok()) return item.status().with_context(part.at("path").path());
  message.parts.push_back({{}, request.media.size()});
  request.media.push_back(std::move(*item));
  return Status::ok();
}

Status read_message(const JsonRef& json, const std::string& folder, Request& request) {
  RequestMessage message;
  TRIPTYCH_ASSIGN_OR_RETURN(message.role, json.at("role").as_string());
  const JsonRef content = json.at("content");
  if (content.json().is_string()) {
    message.parts.push_back({content.json().string_value(), std::nullopt});
  } else if (content.json().is_array()) {
    for (size_t i = 0; i < content.size(); ++i) {
      TRIPTYCH_RETURN_IF_ERROR(read_part(content.at(i), folder, request, message));
    }
  } else {
    return content.error("expected a text or a list of parts");
  }
  request.messages.push_back(std::move(message));
  return Status::ok();
}

constexpr std::string_view kOwn[] = {"id", "messages", "prompt", "class"};

/// A field that is misspelt must not be left out in silence.
Status check_fields(const JsonRef& line) {
  const auto is_in = [](std::span<const std::string_view> names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const Json::Member& member : line.json().members()) {
    if (is_in(kOwn, member.first) || is_in(sampling_fields(), member.first)) continue;
    return line.at(member.first)
        .error(fmt::format("unknown field; known are {}, {}", fmt::join(kOwn, ", "),
                           fmt::join(sampling_fields(), ", ")));
  }
  return Status::ok();
}

Result<ServiceClass> read_class(const JsonRef& line) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string name, line.get_string("class", "standard"));
  for (const ServiceClass c :
       {ServiceClass::kInteractive, ServiceClass::kStandard, ServiceClass::kBatch}) {
    if (name == service_class_name(c)) return c;
  }
  return line.at("class").error("use \"interactive\", \"standard\" or \"batch\"");
}

}  // namespace

Result<RequestLine> read_request(const JsonRef& line, const std::string& folder,
                                 const SamplingParams& defaults) {
  if (!line.json().is_object()) return line.error("expected an object");
  TRIPTYCH_RETURN_IF_ERROR(check_fields(line));
  RequestLine out;
  if (const Json* id = line.json().find("id"); id != nullptr) out.id = *id;
  out.request.sampling = defaults;
  TRIPTYCH_RETURN_IF_ERROR(read_sampling(line, out.request.sampling));
  TRIPTYCH_ASSIGN_OR_RETURN(out.options.service_class, read_class(line));
  if (line.has("prompt") == line.has("messages")) {
    return line.error("needs either \"messages\" or \"prompt\"");
  }
  TRIPTYCH_ASSIGN_OR_RETURN(out.request.raw_prompt, line.get_string("prompt", ""));
  const JsonRef messages = line.at("messages");
  if (!messages.is_null() && !messages.json().is_array()) {
    return messages.error("expected a list of messages");
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    TRIPTYCH_RETURN_IF_ERROR(read_message(messages.at(i), folder, out.request));
  }
  TRIPTYCH_RETURN_IF_ERROR(validate(out.request.sampling).with_context(line.path()));
  return out;
}

}  // namespace triptych::cli
