#include "server/openai/tool_fields.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace triptych::openai {
namespace {

constexpr size_t kLongestName = 64;  ///< as in OpenAI's API

/// Names stand in prompts and grammars as they are.
Result<std::string> read_name(const JsonRef& json) {
  TRIPTYCH_ASSIGN_OR_RETURN(std::string name, json.as_string());
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; };
  if (name.empty() || name.size() > kLongestName || !std::all_of(name.begin(), name.end(), plain)) {
    return json.error(fmt::format("expected 1 to {} letters, digits, '_' and '-'", kLongestName));
  }
  return name;
}

Status check_type(const JsonRef& json) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string type, json.at("type").as_string());
  return type == "function" ? Status::ok() : json.at("type").error("use \"function\"");
}

Result<std::string> read_tool(const JsonRef& tool) {
  TRIPTYCH_RETURN_IF_ERROR(check_type(tool));
  const JsonRef function = tool.at("function");
  TRIPTYCH_ASSIGN_OR_RETURN(std::string name, read_name(function.at("name")));
  TRIPTYCH_RETURN_IF_ERROR(function.get_string("description", "").status());
  const JsonRef parameters = function.at("parameters");
  if (!parameters.is_null() && !parameters.json().is_object()) {
    return parameters.error("expected a JSON schema");
  }
  return name;
}

Result<std::vector<std::string>> read_definitions(const JsonRef& tools, const CallLimits& limits) {
  if (tools.is_null()) return std::vector<std::string>();
  if (!tools.json().is_array()) return tools.error("expected a list of tools");
  if (tools.size() > limits.max_tools) {
    return tools.error(
        fmt::format("there are {} tools; there may be {}", tools.size(), limits.max_tools));
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < tools.size(); ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(std::string name, read_tool(tools.at(i)));
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      return tools.at(i).at("function").at("name").error("another tool has this name");
    }
    names.push_back(std::move(name));
  }
  return names;
}

Status read_choice(const JsonRef& choice, std::vector<std::string> names, ToolUse& out) {
  if (choice.is_null()) return Status::ok();
  if (choice.json().is_object()) {
    TRIPTYCH_RETURN_IF_ERROR(check_type(choice));
    const JsonRef name = choice.at("function").at("name");
    TRIPTYCH_ASSIGN_OR_RETURN(out.named, name.as_string());
    if (std::find(names.begin(), names.end(), out.named) == names.end()) {
      return name.error(fmt::format("there is no such tool; there are {}", fmt::join(names, ", ")));
    }
    out.forced = ForcedCall{{out.named}, false};
    return Status::ok();
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string mode, choice.as_string());
  if (mode == "auto" || mode == "none") return Status::ok();
  if (mode != "required") {
    return choice.error("use \"none\", \"auto\", \"required\" or the name of a function");
  }
  out.forced = ForcedCall{std::move(names), out.several};
  return Status::ok();
}

Status read_call(const JsonRef& call) {
  TRIPTYCH_RETURN_IF_ERROR(call.at("id").as_string().status());
  TRIPTYCH_RETURN_IF_ERROR(check_type(call));
  const JsonRef function = call.at("function");
  TRIPTYCH_RETURN_IF_ERROR(read_name(function.at("name")).status());
  const JsonRef arguments = function.at("arguments");
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string text, arguments.as_string());
  const Result<Json> parsed = parse_json(text);
  if (!parsed.is_ok() || !parsed->is_object()) {
    return arguments.error("expected the text of a JSON object");
  }
  return Status::ok();
}

}  // namespace

Status read_tools(const JsonRef& body, const CallLimits& limits, Call& out) {
  const JsonRef choice = body.at("tool_choice");
  TRIPTYCH_ASSIGN_OR_RETURN(std::vector<std::string> names,
                            read_definitions(body.at("tools"), limits));
  ToolUse use;
  TRIPTYCH_ASSIGN_OR_RETURN(use.several, body.get_bool("parallel_tool_calls", true));
  const bool none = choice.json().is_string() && choice.json().string_value() == "none";
  if (names.empty()) {
    const bool automatic = choice.json().is_string() && choice.json().string_value() == "auto";
    return choice.is_null() || none || automatic ? Status::ok()
                                                 : choice.error("the request has no tools");
  }
  TRIPTYCH_RETURN_IF_ERROR(read_choice(choice, std::move(names), use));
  if (none) return Status::ok();
  if (out.request.sampling.grammar) {
    return body.at("response_format")
        .error(
            "an answer of this form cannot call tools; leave one out, or set tool_choice to "
            "\"none\"");
  }
  out.request.tools = body.at("tools").json();
  out.tools = std::move(use);
  return Status::ok();
}

Status read_message_calls(const JsonRef& json, RequestMessage& message) {
  if (json.has("tool_calls")) {
    const JsonRef calls = json.at("tool_calls");
    if (message.role != "assistant") return calls.error("only an assistant calls tools");
    if (!calls.json().is_array()) return calls.error("expected a list of calls");
    for (size_t i = 0; i < calls.size(); ++i) TRIPTYCH_RETURN_IF_ERROR(read_call(calls.at(i)));
    if (calls.size() > 0) message.tool_calls = calls.json();
  }
  if (message.role == "tool") {
    TRIPTYCH_ASSIGN_OR_RETURN(message.tool_call_id, json.at("tool_call_id").as_string());
  }
  return Status::ok();
}

}  // namespace triptych::openai
