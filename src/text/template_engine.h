#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "text/chat_context.h"

namespace triptych {

/// A template's text and the file or key that it stands in.
struct TemplateText {
  std::string text;
  std::string source;
};

/// The templates of a checkpoint folder.
struct FolderTemplates {
  TemplateText main;
  std::optional<TemplateText> tool_use;
};

/// Looks in the order of Hugging Face (see ChatTemplate::from_folder).
Result<FolderTemplates> find_templates(const std::string& folder);

/// Reads a .jinja file, or the chat_template of a .json file.
Result<TemplateText> read_template_file(const std::string& path);

/// One compiled template and the forms of content that it takes.
class TemplateEngine {
 public:
  static Result<TemplateEngine> make(std::string_view text, const Tokenizer& tokenizer,
                                     const std::string& source);
  ~TemplateEngine();
  TemplateEngine(TemplateEngine&&) noexcept;
  TemplateEngine& operator=(TemplateEngine&&) noexcept;

  Result<std::string> render(const Json& context, const RenderLimits& limits) const;
  const ContentForms& forms() const { return forms_; }
  const std::string& text() const { return text_; }

 private:
  struct Handle;
  TemplateEngine(std::unique_ptr<Handle> handle, std::string_view text, std::string source);
  void probe_forms(const TokenizerConfig& config);

  std::unique_ptr<Handle> handle_;
  std::string text_;
  std::string source_;
  ContentForms forms_;
};

}  // namespace triptych
