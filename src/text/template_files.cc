#include "base/file.h"
#include "text/template_engine.h"

namespace triptych {
namespace {

constexpr uint64_t kMaxTemplateBytes = 16u << 20;
constexpr const char* kNoTemplate =
    "the checkpoint has no chat template (chat_template.jinja, chat_template.json or "
    "tokenizer_config.json); pass --chat-template FILE";

/// `chat_template` of a JSON file: a string, or a list of {name, template}.
Result<std::optional<FolderTemplates>> read_json_templates(const std::string& path) {
  TRIPTYCH_ASSIGN_OR_RETURN(const Json json,
                            parse_json_file(path, JsonLimits{.reject_duplicate_keys = false}));
  const JsonRef root(json, path);
  if (!root.has("chat_template")) return std::optional<FolderTemplates>();
  const JsonRef value = root.at("chat_template");
  FolderTemplates found;
  if (!value.json().is_array()) {
    TRIPTYCH_ASSIGN_OR_RETURN(std::string text, value.as_string());
    found.main = {std::move(text), path};
    return std::optional<FolderTemplates>(std::move(found));
  }
  bool has_main = false;
  for (size_t i = 0; i < value.size(); ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(const std::string name, value.at(i).at("name").as_string());
    TRIPTYCH_ASSIGN_OR_RETURN(std::string text, value.at(i).at("template").as_string());
    TemplateText entry{std::move(text), path + " (" + name + ")"};
    if (name == "tool_use") {
      found.tool_use = std::move(entry);
    } else if (name == "default" || (!has_main && value.size() == 1)) {
      found.main = std::move(entry);
      has_main = true;
    }
  }
  if (!has_main) return value.error("no template of the name \"default\"");
  return std::optional<FolderTemplates>(std::move(found));
}

}  // namespace

Result<TemplateText> read_template_file(const std::string& path) {
  if (path.ends_with(".json")) {
    TRIPTYCH_ASSIGN_OR_RETURN(auto found, read_json_templates(path));
    if (!found) return invalid_argument(path + ": no member \"chat_template\"");
    return std::move(found->main);
  }
  TRIPTYCH_ASSIGN_OR_RETURN(std::string text, read_file(path, kMaxTemplateBytes));
  return TemplateText{std::move(text), path};
}

Result<FolderTemplates> find_templates(const std::string& folder) {
  std::optional<FolderTemplates> found;
  const std::string jinja = folder + "/chat_template.jinja";
  if (file_exists(jinja)) {
    TRIPTYCH_ASSIGN_OR_RETURN(TemplateText main, read_template_file(jinja));
    found = FolderTemplates{std::move(main), std::nullopt};
  }
  for (const char* name : {"/chat_template.json", "/tokenizer_config.json"}) {
    const std::string path = folder + name;
    if (found || !file_exists(path)) continue;
    TRIPTYCH_ASSIGN_OR_RETURN(found, read_json_templates(path));
  }
  if (!found) return not_found(folder + ": " + kNoTemplate);
  const std::string tool_use = folder + "/additional_chat_templates/tool_use.jinja";
  if (file_exists(tool_use)) {
    TRIPTYCH_ASSIGN_OR_RETURN(found->tool_use, read_template_file(tool_use));
  }
  return std::move(*found);
}

}  // namespace triptych
