#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "text/tokenizer.h"

namespace triptych {

/// One part of a message. Media parts hold no data: they are places, counted in request order.
struct MessagePart {
  enum class Kind : uint8_t { kText, kImage, kAudio, kVideo };
  Kind kind = Kind::kText;
  std::string text;  ///< of kText only

  static MessagePart of_text(std::string text) { return {Kind::kText, std::move(text)}; }
  static MessagePart of_media(Kind kind) { return {kind, {}}; }
};

/// One message of a conversation, as chat templates see it.
struct ChatMessage {
  std::string
      role;  ///< "system", "developer", "user", "assistant", "tool"; lower case and '_' only
  std::vector<MessagePart> parts;
  Json tool_calls;  ///< array as the OpenAI API has it, or null; argument strings are parsed
  std::string tool_call_id;
  std::string name;
  std::string reasoning_content;
};

/// Everything a template is rendered with.
struct ChatPrompt {
  std::vector<ChatMessage> messages;
  Json tools;      ///< array of tool definitions, or null
  Json documents;  ///< array, or null
  Json variables;  ///< object of further template variables (enable_thinking), or null
  bool add_generation_prompt = true;
};

/// The rendered prompt and which of its bytes must stay text: those of special-token strings that
/// came from messages, tools or documents and not from the template.
struct RenderedPrompt {
  std::string text;
  std::vector<ByteRange> plain;  ///< sorted, disjoint
};

/// Limits of one rendering; a hostile template ends with kInvalidArgument within a second
/// of computing (ten at most where other work takes the cores away).
struct RenderLimits {
  uint64_t fuel = 2'000'000;            ///< template instructions
  size_t max_output_bytes = 16u << 20;  ///< of the rendered prompt and of any string on the way
  double max_seconds = 0.8;             ///< of computing
};

/// Ids of the media tokens, from the model's config; unset where the model has none.
struct MediaTokenIds {
  std::optional<TokenId> image;
  std::optional<TokenId> audio;
  std::optional<TokenId> video;
};

/// A place in the ids where the features of one media part go.
struct MediaSlot {
  size_t index = 0;  ///< ids[index] is the media token; the caller repeats it
  MessagePart::Kind kind = MessagePart::Kind::kImage;
  size_t ordinal = 0;  ///< which part of that kind, counted from 0 over the whole conversation
};

/// What a conversation becomes before media tokens are expanded.
struct EncodedPrompt {
  std::vector<TokenId> ids;
  std::vector<MediaSlot> slots;  ///< by index
  std::string text;              ///< the rendered prompt, for logs and tests
};

/// A checkpoint's Jinja chat template, rendered as Hugging Face renders it. Immutable after loading
/// and shared by threads; each rendering has its own state and limits.
class ChatTemplate {
 public:
  /// Finds the template of a checkpoint folder: chat_template.jinja, else chat_template.json, else
  /// tokenizer_config.json (a string or a list of named ones); further ones lie in
  /// additional_chat_templates/. kNotFound, saying "pass --chat-template FILE", without any.
  static Result<std::shared_ptr<const ChatTemplate>> from_folder(
      const std::string& folder, std::shared_ptr<const Tokenizer> tokenizer);
  /// Reads the template from a file of the user's.
  static Result<std::shared_ptr<const ChatTemplate>> from_file(
      const std::string& path, std::shared_ptr<const Tokenizer> tokenizer);
  /// Takes the template's own text (GGUF metadata); `source` stands in error messages.
  static Result<std::shared_ptr<const ChatTemplate>> from_text(
      std::string_view text, std::shared_ptr<const Tokenizer> tokenizer, std::string source);
  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  /// Renders the prompt's text. kInvalidArgument with the template's own message when it refuses
  /// the conversation (raise_exception), takes no media, or runs over a limit.
  Result<RenderedPrompt> render(const ChatPrompt& prompt, const RenderLimits& limits = {}) const;

  /// Renders and tokenises in one pass, then finds the media slots. kInvalidArgument with both
  /// numbers when the template gave more or fewer places than the messages have media parts.
  Result<EncodedPrompt> encode(const ChatPrompt& prompt, const MediaTokenIds& media,
                               const RenderLimits& limits = {}) const;

  /// True when user messages may be given as a list of parts, which media need.
  bool takes_parts() const;
  const std::string& source() const { return source_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  struct Engine;
  ChatTemplate(std::shared_ptr<const Tokenizer> tokenizer, std::string source,
               std::unique_ptr<Engine> engine);
  Result<RenderedPrompt> render_guarded(const ChatPrompt& prompt,
                                        const std::vector<std::string>& never_from_users,
                                        const RenderLimits& limits) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::string source_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace triptych
