#include "text/chat_context.h"

#include <algorithm>

namespace triptych {
namespace {

constexpr size_t kMaxRoleLength = 32;

std::string_view kind_name(MessagePart::Kind kind) {
  switch (kind) {
    case MessagePart::Kind::kImage:
      return "image";
    case MessagePart::Kind::kAudio:
      return "audio";
    case MessagePart::Kind::kVideo:
      return "video";
    case MessagePart::Kind::kText:
      break;
  }
  return "text";
}

const MessagePart* first_media(const ChatMessage& message) {
  for (const MessagePart& part : message.parts) {
    if (part.kind != MessagePart::Kind::kText) return &part;
  }
  return nullptr;
}

/// The content of a message in a form that the template takes. One text alone becomes a string
/// wherever that is possible, so that "hi" and [{text "hi"}] are the same prompt.
Json make_content(const ChatMessage& message, const ContentForm& form, const TextGuard& guard) {
  const bool as_parts =
      form.parts && (!form.text || message.parts.size() > 1 || first_media(message) != nullptr);
  if (as_parts) {
    Json list = Json::array();
    for (const MessagePart& part : message.parts) {
      Json entry = Json::object();
      entry.push_member("type", Json::string(std::string(kind_name(part.kind))));
      if (part.kind == MessagePart::Kind::kText) {
        entry.push_member("text", Json::string(guard.mark_text(part.text)));
      }
      list.append(std::move(entry));
    }
    return list;
  }
  std::string text;
  for (size_t i = 0; i < message.parts.size(); ++i) {
    if (i > 0) text += '\n';
    text += message.parts[i].text;
  }
  return Json::string(guard.mark_text(text));
}

/// Tool calls with argument texts parsed: templates iterate over the arguments.
Json make_tool_calls(const Json& calls, const TextGuard& guard) {
  Json list = Json::array();
  for (const Json& call : calls.elements()) {
    Json copy = call;
    const Json* function = call.find("function");
    const Json* arguments = function != nullptr ? function->find("arguments") : nullptr;
    if (arguments != nullptr && arguments->is_string()) {
      auto parsed = parse_json(arguments->string_value());
      if (parsed.is_ok() && parsed->is_object()) {
        Json with_object = *function;
        with_object.set("arguments", std::move(*parsed));
        copy.set("function", std::move(with_object));
      }
    }
    list.append(guard.mark_json(copy));
  }
  return list;
}

Json make_message(const ChatMessage& message, const ContentForm& form, const TextGuard& guard) {
  Json json = Json::object();
  json.push_member("role", Json::string(message.role));
  json.push_member("content", make_content(message, form, guard));
  if (message.tool_calls.is_array()) {
    json.push_member("tool_calls", make_tool_calls(message.tool_calls, guard));
  }
  const std::pair<const char*, const std::string*> texts[] = {
      {"tool_call_id", &message.tool_call_id},
      {"name", &message.name},
      {"reasoning_content", &message.reasoning_content}};
  for (const auto& [key, text] : texts) {
    if (!text->empty()) json.push_member(key, Json::string(guard.mark_text(*text)));
  }
  return json;
}

std::string place(size_t index) { return "messages[" + std::to_string(index) + "]"; }

}  // namespace

const ContentForm& ContentForms::of(std::string_view role) const {
  if (role == "assistant") return assistant;
  if (role == "system" || role == "developer") return system;
  if (role == "tool" || role == "function") return tool;
  return user;
}

Status check_messages(const std::vector<ChatMessage>& messages) {
  if (messages.empty()) return invalid_argument("messages: the conversation is empty");
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    const bool plain = std::all_of(role.begin(), role.end(),
                                   [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
    // Templates print roles between special tokens, so a role must not be free text.
    if (role.empty() || role.size() > kMaxRoleLength || !plain) {
      return invalid_argument(place(i) + ".role: expected a word of lower-case letters");
    }
    for (const MessagePart& part : messages[i].parts) {
      const size_t at = find_invalid_utf8(part.text);
      if (at != std::string_view::npos) {
        return invalid_argument(place(i) + ".content: not valid UTF-8 at byte " +
                                std::to_string(at));
      }
    }
  }
  return Status::ok();
}

std::vector<std::string_view> all_texts(const ChatPrompt& prompt,
                                        std::vector<std::string>& storage) {
  storage.clear();
  for (const Json* json : {&prompt.tools, &prompt.documents, &prompt.variables}) {
    if (!json->is_null()) storage.push_back(json->dump());
  }
  for (const ChatMessage& message : prompt.messages) {
    if (!message.tool_calls.is_null()) storage.push_back(message.tool_calls.dump());
  }
  std::vector<std::string_view> texts(storage.begin(), storage.end());
  for (const ChatMessage& message : prompt.messages) {
    texts.insert(texts.end(), {message.tool_call_id, message.name, message.reasoning_content});
    for (const MessagePart& part : message.parts) texts.push_back(part.text);
  }
  return texts;
}

Result<Json> make_context(const ChatPrompt& prompt, const ContentForms& forms,
                          const TokenizerConfig& config, const TextGuard& guard) {
  Json messages = Json::array();
  for (size_t i = 0; i < prompt.messages.size(); ++i) {
    const ChatMessage& message = prompt.messages[i];
    const ContentForm& form = forms.of(message.role);
    const MessagePart* media = first_media(message);
    if (media != nullptr && !form.parts) {
      return invalid_argument(place(i) + ".content: the chat template takes text only from the " +
                              message.role + "; it has no place for " +
                              std::string(kind_name(media->kind)) + " parts");
    }
    messages.append(make_message(message, form, guard));
  }
  Json context = Json::object();
  context.push_member("messages", std::move(messages));
  context.push_member("tools", guard.mark_json(prompt.tools));
  context.push_member("documents", guard.mark_json(prompt.documents));
  context.push_member("add_generation_prompt", Json::boolean(prompt.add_generation_prompt));
  for (const auto& [name, text] : config.named_tokens) context.set(name, Json::string(text));
  for (const auto& [name, value] : prompt.variables.members()) {
    context.set(name, guard.mark_json(value));
  }
  return context;
}

}  // namespace triptych
