#include "text/tool_calls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace triptych {
namespace {

constexpr std::string_view kWhite = " \t\r\n";

// Names that no template contains. Some templates want ids of nine letters.
constexpr const char* kProbeTools = R"([{"type": "function", "function": {
  "name": "triptych9tool", "description": "A tool.", "parameters": {"type": "object",
  "properties": {"triptych9key": {"type": "string", "description": "A key."}},
  "required": ["triptych9key"]}}}])";
constexpr const char* kProbeCalls = R"([{"id": "triptych9", "type": "function", "function": {
  "name": "triptych9call", "arguments": "{\"triptych9key\": \"value\"}"}}])";
constexpr std::string_view kProbeTool = "triptych9tool";
constexpr std::string_view kProbeCall = "triptych9call";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kWhite);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhite) - begin + 1);
}

/// The JSON object that begins with `text`, up to its last bracket; nothing when it does not end.
std::optional<std::string_view> leading_object(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return text.substr(0, i + 1);
    }
  }
  return std::nullopt;
}

/// The name of the element that `before` ends in the start of and `after` begins with the end of.
std::string_view enclosing_element(std::string_view before, std::string_view after) {
  if (!before.ends_with('>')) return {};
  const size_t begin = before.rfind('<');
  if (begin == std::string_view::npos) return {};
  const std::string_view name = before.substr(begin + 1, before.size() - begin - 2);
  if (name.empty() || !after.starts_with("</")) return {};
  after.remove_prefix(2);
  return after.starts_with(name) && after.substr(name.size()).starts_with('>') ? name
                                                                               : std::string_view();
}

Result<std::string> render_probe(const ChatTemplate& chat, bool with_call) {
  TRIPTYCH_ASSIGN_OR_RETURN(const Json tools, parse_json(kProbeTools));
  ChatPrompt prompt{.messages = {}, .tools = tools, .documents = {}, .variables = {}};
  ChatMessage question;
  question.role = "user";
  question.parts.push_back(MessagePart::of_text("hi"));
  prompt.messages.push_back(std::move(question));
  if (with_call) {
    ChatMessage call;
    call.role = "assistant";
    TRIPTYCH_ASSIGN_OR_RETURN(call.tool_calls, parse_json(kProbeCalls));
    prompt.messages.push_back(std::move(call));
    prompt.add_generation_prompt = false;
  }
  TRIPTYCH_ASSIGN_OR_RETURN(RenderedPrompt rendered, chat.render(prompt));
  return std::move(rendered.text);
}

/// The call that a JSON object says, whatever its arguments are called.
std::optional<ToolCall> call_of(const Json& json) {
  const Json* name = json.find("name");
  if (name == nullptr || !name->is_string() || name->string_value().empty()) return std::nullopt;
  for (const char* key : {"arguments", "parameters"}) {
    const Json* arguments = json.find(key);
    if (arguments == nullptr) continue;
    if (arguments->is_object()) return ToolCall{name->string_value(), arguments->dump()};
    return std::nullopt;
  }
  return ToolCall{name->string_value(), "{}"};  // a tool without arguments
}

std::optional<ToolCall> parse_call(std::string_view text) {
  const Result<Json> json = parse_json(text);
  return json.is_ok() ? call_of(*json) : std::nullopt;
}

/// One call, or a list of nothing but calls; empty otherwise.
std::vector<ToolCall> parse_bare_calls(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json.is_ok()) return {};
  const bool one = json->is_object();
  std::vector<ToolCall> out;
  for (const Json& element : one ? std::vector<Json>{*json} : json->elements()) {
    std::optional<ToolCall> call = call_of(element);
    if (!call) return {};
    out.push_back(std::move(*call));
  }
  return out;
}

/// Length of the longest end of `text` that may be the beginning of `tag`.
size_t open_end(std::string_view text, std::string_view tag) {
  for (size_t n = std::min(text.size(), tag.size() - 1); n > 0; --n) {
    if (tag.starts_with(text.substr(text.size() - n))) return n;
  }
  return 0;
}

/// The schema of a tool's arguments, to be written as templates write calls. White space that may
/// come anywhere lets a model that has lost its way go on with blanks.
Json spaced_schema(const Json* parameters) {
  Json out;
  if (parameters == nullptr || parameters->is_null()) {
    out.set("type", Json::string("object"));
  } else {
    out = *parameters;
  }
  Json form = Json::object();
  form.set("whitespace_flexible", Json::boolean(false));
  form.set("item_separator", Json::string(", "));
  form.set("key_separator", Json::string(": "));
  if (out.find("x-guidance") == nullptr) out.set("x-guidance", std::move(form));
  return out;
}

std::string quoted(std::string_view text) { return Json::string(std::string(text)).dump(); }

}  // namespace

Result<ToolCallFormat> find_tool_call_format(const ChatTemplate& chat) {
  const Status without(StatusCode::kUnsupported,
                       "the chat template of this model has no place for tools");
  const Result<std::string> offered = render_probe(chat, false);
  if (!offered.is_ok() || offered->find(kProbeTool) == std::string::npos) return without;
  const Result<std::string> called = render_probe(chat, true);
  const size_t at = called.is_ok() ? called->find(kProbeCall) : std::string::npos;
  if (at == std::string::npos) return without;

  const Status strange(StatusCode::kUnsupported,
                       "the chat template of this model writes calls of tools in a form that is "
                       "not known here");
  const size_t brace = called->rfind('{', at);
  if (brace == std::string::npos) return strange;
  const std::string_view text = *called;
  const std::optional<std::string_view> object = leading_object(text.substr(brace));
  if (!object) return strange;
  const Result<Json> json = parse_json(*object);
  if (!json.is_ok() || !call_of(*json)) return strange;
  ToolCallFormat out;
  if (json->find("parameters") != nullptr) out.arguments_key = "parameters";
  if (json->find(out.arguments_key) == nullptr) return strange;

  const std::string_view before = text.substr(0, brace);
  const std::string_view after = text.substr(brace + object->size());
  const std::string_view around_before = before.substr(0, before.find_last_not_of(kWhite) + 1);
  const size_t after_white = std::min(after.find_first_not_of(kWhite), after.size());
  if (around_before.ends_with(':')) return strange;  // inside another object
  out.in_array = around_before.ends_with('[');
  const std::string_view name = enclosing_element(around_before, after.substr(after_white));
  if (!name.empty()) {
    out.open = before.substr(around_before.size() - name.size() - 2);
    out.close = after.substr(0, after_white + name.size() + 3);
  }
  return out;
}

ToolCallParser::ToolCallParser(ToolCallFormat format)
    : format_(std::move(format)),
      open_tag_(trimmed(format_.open)),
      close_tag_(trimmed(format_.close)),
      state_(open_tag_.empty() ? State::kMaybeCalls : State::kText) {}

ToolCallParser::Output ToolCallParser::push(std::string_view piece) {
  held_ += piece;
  Output out;
  if (open_tag_.empty()) {
    take_bare(out);
  } else {
    take_tagged(out);
  }
  return out;
}

void ToolCallParser::take_tagged(Output& out) {
  while (true) {
    if (state_ == State::kAfterCall) {  // white space between calls is no text
      held_.erase(0, std::min(held_.find_first_not_of(kWhite), held_.size()));
      if (held_.empty()) return;
      state_ = State::kText;
    }
    if (state_ == State::kText) {
      const size_t at = held_.find(open_tag_);
      const bool found = at != std::string::npos;
      const size_t certain = found ? at : held_.size() - open_end(held_, open_tag_);
      out.text += held_.substr(0, certain);
      held_.erase(0, found ? certain + open_tag_.size() : certain);
      if (!found) return;
      state_ = State::kInCall;
    }
    const size_t at = held_.find(close_tag_);
    if (at == std::string::npos) return;
    const std::string inside = held_.substr(0, at);
    held_.erase(0, at + close_tag_.size());
    if (std::optional<ToolCall> call = parse_call(inside)) {
      out.calls.push_back(std::move(*call));
      state_ = State::kAfterCall;
    } else {
      out.text += open_tag_ + inside + close_tag_;
      state_ = State::kText;
    }
  }
}

/// An answer that begins with a bracket is held back to its end.
void ToolCallParser::take_bare(Output& out) {
  if (state_ == State::kMaybeCalls) {
    const size_t at = held_.find_first_not_of(kWhite);
    if (at == std::string::npos) return;
    state_ = held_[at] == '{' || held_[at] == '[' ? State::kInCall : State::kText;
  }
  if (state_ != State::kText) return;
  out.text += held_;
  held_.clear();
}

ToolCallParser::Output ToolCallParser::end() {
  Output out;
  if (state_ == State::kInCall) {  // models end their answer in place of the last tag
    if (open_tag_.empty()) {
      out.calls = parse_bare_calls(held_);
    } else if (std::optional<ToolCall> call = parse_call(held_)) {
      out.calls.push_back(std::move(*call));
    }
  }
  if (out.calls.empty() && state_ != State::kAfterCall) {
    if (state_ == State::kInCall) out.text = open_tag_;
    out.text += held_;
  }
  held_.clear();
  return out;
}

// Each tool's schema is a document of its own, so that its references stay its own.
GrammarSpec forced_call_grammar(const ToolCallFormat& format, const Json& tools,
                                const ForcedCall& call) {
  std::string rules;
  std::vector<std::string> calls;
  for (const Json& tool : tools.elements()) {
    const Json* function = tool.find("function");
    const std::string& name = function->find("name")->string_value();
    if (std::find(call.names.begin(), call.names.end(), name) == call.names.end()) continue;
    const size_t i = calls.size();
    rules += fmt::format(
        "call_{}: {} arguments_{} \"}}\"\narguments_{}: %json {}\n", i,
        quoted(fmt::format("{{\"name\": {}, \"{}\": ", quoted(name), format.arguments_key)), i, i,
        spaced_schema(function->find("parameters")).dump());
    calls.push_back(fmt::format("call_{}", i));
  }
  rules += fmt::format("call: {}\n", fmt::join(calls, " | "));
  std::string one = "call";
  std::string between = quoted(format.in_array ? ", " : "\n");
  if (!format.open.empty()) {
    one = fmt::format("{} call {}", quoted(format.open), quoted(format.close));
  }
  std::string all = one;
  // Calls without anything around them can be told apart in an array only.
  if (call.several && (format.in_array || !format.open.empty())) {
    all += fmt::format(" ({} {})*", between, one);
  }
  if (format.in_array) all = fmt::format("\"[\" {} \"]\"", all);
  return {.kind = GrammarKind::kLark,
          .text = fmt::format("start: {}\n{}", all, rules),
          .source = "tools"};
}

}  // namespace triptych
