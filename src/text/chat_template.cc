#include "text/chat_template.h"

#include <algorithm>

#include "text/chat_context.h"
#include "text/ffi.h"
#include "text/template_engine.h"

namespace triptych {
namespace {

std::string_view plural_name(MessagePart::Kind kind) {
  switch (kind) {
    case MessagePart::Kind::kImage:
      return "images";
    case MessagePart::Kind::kAudio:
      return "audio parts";
    case MessagePart::Kind::kVideo:
      return "videos";
    case MessagePart::Kind::kText:
      break;
  }
  return "texts";
}

size_t count_parts(const ChatPrompt& prompt, MessagePart::Kind kind) {
  size_t n = 0;
  for (const ChatMessage& message : prompt.messages) {
    n += static_cast<size_t>(std::count_if(message.parts.begin(), message.parts.end(),
                                           [&](const MessagePart& p) { return p.kind == kind; }));
  }
  return n;
}

struct KindToken {
  MessagePart::Kind kind;
  std::optional<TokenId> id;
};

std::vector<KindToken> kind_tokens(const MediaTokenIds& media) {
  return {{MessagePart::Kind::kImage, media.image},
          {MessagePart::Kind::kAudio, media.audio},
          {MessagePart::Kind::kVideo, media.video}};
}

/// Fills in the slots of one kind; the template must have made one place for each part.
Status find_slots(const ChatPrompt& prompt, const KindToken& token, EncodedPrompt& encoded) {
  const size_t wanted = count_parts(prompt, token.kind);
  const std::string name(plural_name(token.kind));
  if (!token.id) {
    if (wanted == 0) return Status::ok();
    return invalid_argument("the messages have " + std::to_string(wanted) + " " + name +
                            ", but this model takes none");
  }
  size_t found = 0;
  for (size_t i = 0; i < encoded.ids.size(); ++i) {
    if (encoded.ids[i] != *token.id) continue;
    encoded.slots.push_back({i, token.kind, found++});
  }
  if (found == wanted) return Status::ok();
  return invalid_argument("the messages have " + std::to_string(wanted) + " " + name +
                          ", but the chat template made places for " + std::to_string(found));
}

}  // namespace

struct ChatTemplate::Engine {
  TemplateEngine main;
  std::optional<TemplateEngine> tool_use;
  ReservedStrings reserved;

  const TemplateEngine& for_prompt(const ChatPrompt& prompt) const {
    return tool_use && !prompt.tools.is_null() ? *tool_use : main;
  }
};

ChatTemplate::ChatTemplate(std::shared_ptr<const Tokenizer> tokenizer, std::string source,
                           std::unique_ptr<Engine> engine)
    : tokenizer_(std::move(tokenizer)), source_(std::move(source)), engine_(std::move(engine)) {}

ChatTemplate::~ChatTemplate() = default;

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::from_text(
    std::string_view text, std::shared_ptr<const Tokenizer> tokenizer, std::string source) {
  TRIPTYCH_ASSIGN_OR_RETURN(TemplateEngine main, TemplateEngine::make(text, *tokenizer, source));
  auto engine = std::make_unique<Engine>(
      Engine{std::move(main), std::nullopt, ReservedStrings(tokenizer->special_strings())});
  return std::shared_ptr<const ChatTemplate>(
      new ChatTemplate(std::move(tokenizer), std::move(source), std::move(engine)));
}

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::from_file(
    const std::string& path, std::shared_ptr<const Tokenizer> tokenizer) {
  TRIPTYCH_ASSIGN_OR_RETURN(const TemplateText found, read_template_file(path));
  return from_text(found.text, std::move(tokenizer), path);
}

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::from_folder(
    const std::string& folder, std::shared_ptr<const Tokenizer> tokenizer) {
  TRIPTYCH_ASSIGN_OR_RETURN(const FolderTemplates found, find_templates(folder));
  TRIPTYCH_ASSIGN_OR_RETURN(TemplateEngine main,
                            TemplateEngine::make(found.main.text, *tokenizer, found.main.source));
  std::optional<TemplateEngine> tool_use;
  if (found.tool_use) {
    TRIPTYCH_ASSIGN_OR_RETURN(
        tool_use, TemplateEngine::make(found.tool_use->text, *tokenizer, found.tool_use->source));
  }
  auto engine = std::make_unique<Engine>(
      Engine{std::move(main), std::move(tool_use), ReservedStrings(tokenizer->special_strings())});
  return std::shared_ptr<const ChatTemplate>(
      new ChatTemplate(std::move(tokenizer), found.main.source, std::move(engine)));
}

bool ChatTemplate::takes_parts() const { return engine_->main.forms().user.parts; }

Result<RenderedPrompt> ChatTemplate::render_guarded(
    const ChatPrompt& prompt, const std::vector<std::string>& never_from_users,
    const RenderLimits& limits) const {
  TRIPTYCH_RETURN_IF_ERROR(check_messages(prompt.messages));
  const TemplateEngine& engine = engine_->for_prompt(prompt);
  std::vector<std::string> storage;
  std::vector<std::string_view> inputs = all_texts(prompt, storage);
  inputs.push_back(engine.text());
  std::optional<ReservedStrings> more;
  if (!never_from_users.empty()) {
    std::vector<std::string> all = tokenizer_->special_strings();
    all.insert(all.end(), never_from_users.begin(), never_from_users.end());
    more.emplace(all);
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const TextGuard guard,
                            TextGuard::make(more ? &*more : &engine_->reserved, inputs));
  TRIPTYCH_ASSIGN_OR_RETURN(const Json context,
                            make_context(prompt, engine.forms(), tokenizer_->config(), guard));
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string rendered, engine.render(context, limits));
  return guard.unmark(rendered);
}

Result<RenderedPrompt> ChatTemplate::render(const ChatPrompt& prompt,
                                            const RenderLimits& limits) const {
  return render_guarded(prompt, {}, limits);
}

Result<EncodedPrompt> ChatTemplate::encode(const ChatPrompt& prompt, const MediaTokenIds& media,
                                           const RenderLimits& limits) const {
  // A media token is reserved even where the checkpoint forgot to call it special.
  std::vector<std::string> media_strings;
  for (const KindToken& token : kind_tokens(media)) {
    if (!token.id || tokenizer_->is_special(*token.id)) continue;
    if (auto text = tokenizer_->id_to_token(*token.id)) media_strings.push_back(*text);
  }
  TRIPTYCH_ASSIGN_OR_RETURN(RenderedPrompt rendered, render_guarded(prompt, media_strings, limits));
  EncodedPrompt encoded;
  TRIPTYCH_ASSIGN_OR_RETURN(encoded.ids,
                            tokenizer_->encode_segments(rendered.text, rendered.plain));
  for (const KindToken& token : kind_tokens(media)) {
    TRIPTYCH_RETURN_IF_ERROR(find_slots(prompt, token, encoded));
  }
  std::sort(encoded.slots.begin(), encoded.slots.end(),
            [](const MediaSlot& a, const MediaSlot& b) { return a.index < b.index; });
  encoded.text = std::move(rendered.text);
  return encoded;
}

}  // namespace triptych
