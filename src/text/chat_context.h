#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "text/chat_template.h"
#include "text/text_guard.h"

namespace triptych {

/// How a template takes the content of a role's messages.
struct ContentForm {
  bool text = true;    ///< as a string
  bool parts = false;  ///< as a list of {type, text}
};

/// The forms of the roles that templates treat differently.
struct ContentForms {
  ContentForm user, assistant, system, tool;

  const ContentForm& of(std::string_view role) const;
};

/// Checks the roles and texts of a conversation; errors name the message ("messages[2].role: ...").
Status check_messages(const std::vector<ChatMessage>& messages);

/// Every text of `prompt`; JSON members as their dumps, which `storage` keeps.
std::vector<std::string_view> all_texts(const ChatPrompt& prompt,
                                        std::vector<std::string>& storage);

/// The template's variables for `prompt`, with user text marked. kInvalidArgument for media in a
/// message that the template takes as a string only.
Result<Json> make_context(const ChatPrompt& prompt, const ContentForms& forms,
                          const TokenizerConfig& config, const TextGuard& guard);

}  // namespace triptych
