#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

/// Readers of tests/parity/goldens/text (made by tools/parity/text_goldens.py), for tests only.
namespace triptych::goldens {

inline const std::string kFolder = "tests/parity/goldens/text/";

inline const std::vector<std::string>& tokenizer_kinds() {
  static const std::vector<std::string> kinds = {"llama2", "llama2_legacy", "llama3", "qwen2",
                                                 "smollm", "unigram",       "frame",  "demo"};
  return kinds;
}

inline std::string tokenizer_folder(const std::string& kind) {
  return kind == "demo" ? "models/demo" : kFolder + "tokenizers/" + kind;
}

inline std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& kind) {
  auto tokenizer = Tokenizer::from_folder(tokenizer_folder(kind));
  EXPECT_TRUE(tokenizer.is_ok()) << tokenizer.status().message();
  return tokenizer.is_ok() ? *tokenizer : nullptr;
}

inline Json read(const std::string& name) {
  auto json = parse_json_file(kFolder + name);
  EXPECT_TRUE(json.is_ok()) << json.status().message();
  return json.is_ok() ? std::move(*json) : Json();
}

inline std::vector<std::string> strings() {
  std::vector<std::string> out;
  const Json list = read("strings.json");
  for (const Json& text : list.elements()) out.push_back(text.string_value());
  return out;
}

inline std::vector<TokenId> ids(const Json& list) {
  std::vector<TokenId> out;
  for (const Json& id : list.elements()) out.push_back(static_cast<TokenId>(id.int_value()));
  return out;
}

/// A conversation of chat_cases.json, as our messages.
inline ChatPrompt to_prompt(const Json& json) {
  ChatPrompt prompt;
  const auto text_of = [](const Json& object, std::string_view key) {
    const Json* value = object.find(key);
    return value != nullptr ? value->string_value() : std::string();
  };
  for (const Json& entry : json.find("messages")->elements()) {
    ChatMessage message;
    message.role = text_of(entry, "role");
    const Json& content = *entry.find("content");
    if (content.is_string()) {
      message.parts.push_back(MessagePart::of_text(content.string_value()));
    }
    for (const Json& part : content.elements()) {
      message.parts.push_back(text_of(part, "type") == "image"
                                  ? MessagePart::of_media(MessagePart::Kind::kImage)
                                  : MessagePart::of_text(text_of(part, "text")));
    }
    if (const Json* calls = entry.find("tool_calls")) message.tool_calls = *calls;
    message.tool_call_id = text_of(entry, "tool_call_id");
    message.reasoning_content = text_of(entry, "reasoning_content");
    prompt.messages.push_back(std::move(message));
  }
  if (const Json* tools = json.find("tools")) prompt.tools = *tools;
  if (const Json* variables = json.find("variables")) prompt.variables = *variables;
  if (const Json* add = json.find("add_generation_prompt")) {
    prompt.add_generation_prompt = add->bool_value();
  }
  return prompt;
}

}  // namespace triptych::goldens
