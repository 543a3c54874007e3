#include "text/template_engine.h"

#include "text/ffi.h"

namespace triptych {
namespace {

/// A text and a key that no template contains.
constexpr std::string_view kProbeText = "triptych9probe";
constexpr std::string_view kProbeKey = "triptych9key";

tt_render_limits to_limits(const RenderLimits& limits) {
  return {limits.fuel, limits.max_output_bytes, limits.max_seconds};
}

/// The probe text as a string, or as a part whose extra key shows when a list is printed as it is.
Json probe_content(bool as_parts) {
  Json text = Json::string(std::string(kProbeText));
  if (!as_parts) return text;
  Json part = Json::object();
  part.push_member("type", Json::string("text"));
  part.push_member("text", std::move(text));
  part.push_member(std::string(kProbeKey), Json::integer(1));
  return Json::array({std::move(part)});
}

Json probe_message(std::string_view role, Json content) {
  Json message = Json::object();
  message.push_member("role", Json::string(std::string(role)));
  message.push_member("content", std::move(content));
  return message;
}

Json plain_content(const ContentForm& form, std::string_view text) {
  if (form.text) return Json::string(std::string(text));
  Json part = Json::object();
  part.push_member("type", Json::string("text"));
  part.push_member("text", Json::string(std::string(text)));
  return Json::array({std::move(part)});
}

}  // namespace

struct TemplateEngine::Handle {
  explicit Handle(tt_template* compiled) : raw(compiled) {}
  ~Handle() { tt_template_free(raw); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  tt_template* raw;
};

TemplateEngine::TemplateEngine(std::unique_ptr<Handle> handle, std::string_view text,
                               std::string source)
    : handle_(std::move(handle)), text_(text), source_(std::move(source)) {}
TemplateEngine::~TemplateEngine() = default;
TemplateEngine::TemplateEngine(TemplateEngine&&) noexcept = default;
TemplateEngine& TemplateEngine::operator=(TemplateEngine&&) noexcept = default;

Result<TemplateEngine> TemplateEngine::make(std::string_view text, const Tokenizer& tokenizer,
                                            const std::string& source) {
  tt_template* raw = nullptr;
  ffi::Text error;
  const tt_status status =
      tt_template_new(ffi::bytes(text), to_limits(RenderLimits{}), &raw, error.out());
  TRIPTYCH_RETURN_IF_ERROR(ffi::to_status(status, error).with_context("chat template " + source));
  TemplateEngine engine(std::make_unique<Handle>(raw), text, source);
  engine.probe_forms(tokenizer.config());
  return engine;
}

Result<std::string> TemplateEngine::render(const Json& context, const RenderLimits& limits) const {
  ffi::Text out;
  ffi::Text error;
  const std::string json = context.dump();
  const tt_status status =
      tt_template_render(handle_->raw, ffi::bytes(json), to_limits(limits), out.out(), error.out());
  TRIPTYCH_RETURN_IF_ERROR(ffi::to_status(status, error).with_context("chat template " + source_));
  return out.string();
}

/// Renders a small conversation for each role with its content as a string and as a list. A form is
/// taken when the text comes out and the list's own keys do not. Where neither works the template
/// wants something that a probe cannot know, and strings are the common ground.
void TemplateEngine::probe_forms(const TokenizerConfig& config) {
  const RenderLimits limits{.fuel = 200'000, .max_output_bytes = 1 << 20, .max_seconds = 0.3};
  const auto takes = [&](std::vector<Json> before, std::string_view role, bool as_parts) {
    Json messages = Json::array(std::move(before));
    messages.append(probe_message(role, probe_content(as_parts)));
    if (role == "system") {
      messages.append(probe_message("user", plain_content(forms_.user, "hi")));
    }
    Json context = Json::object();
    context.push_member("messages", std::move(messages));
    context.push_member("tools", Json());
    context.push_member("documents", Json());
    context.push_member("add_generation_prompt", Json::boolean(role != "assistant"));
    for (const auto& [name, text] : config.named_tokens) context.set(name, Json::string(text));
    const auto rendered = render(context, limits);
    return rendered.is_ok() && rendered->find(kProbeText) != std::string::npos &&
           rendered->find(kProbeKey) == std::string::npos;
  };
  const auto probe = [&](const std::vector<Json>& before, std::string_view role) {
    ContentForm form{takes(before, role, false), takes(before, role, true)};
    if (!form.text && !form.parts) form.text = true;
    return form;
  };
  forms_.user = probe({}, "user");
  const Json question = probe_message("user", plain_content(forms_.user, "hi"));
  forms_.assistant = probe({question}, "assistant");
  forms_.system = probe({}, "system");
  const Json answer = probe_message("assistant", plain_content(forms_.assistant, "yes"));
  forms_.tool = probe({question, answer}, "tool");
}

}  // namespace triptych
