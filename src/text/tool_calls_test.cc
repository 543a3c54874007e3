#include "text/tool_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parity/text_goldens.h"
#include "text/grammar.h"

namespace triptych {
namespace {

using ::testing::HasSubstr;

Result<ToolCallFormat> format_of(const std::string& name) {
  const auto chat = ChatTemplate::from_file(
      "tests/parity/goldens/text/templates/" + name + ".jinja", goldens::load_tokenizer("llama2"));
  EXPECT_TRUE(chat.is_ok()) << chat.status().message();
  return find_tool_call_format(**chat);
}

Result<ToolCallFormat> format_of_text(std::string_view text) {
  const auto chat = ChatTemplate::from_text(text, goldens::load_tokenizer("llama2"), "test.jinja");
  EXPECT_TRUE(chat.is_ok()) << chat.status().message();
  return find_tool_call_format(**chat);
}

constexpr const char* kMistral =
    "{% if tools %}[AVAILABLE_TOOLS]{{ tools | tojson }}[/AVAILABLE_TOOLS]{% endif %}"
    "{% for m in messages %}{% if m.tool_calls %}[TOOL_CALLS][{% for c in m.tool_calls %}"
    "{{ c.function | tojson }}{% if not loop.last %}, {% endif %}{% endfor %}]"
    "{% else %}{{ m.content }}{% endif %}{% endfor %}";

TEST(ToolCallFormat, IsLearntFromTheTemplate) {
  const auto qwen = format_of("qwen_tools");
  ASSERT_TRUE(qwen.is_ok()) << qwen.status().message();
  EXPECT_EQ(qwen->open, "<tool_call>\n");
  EXPECT_EQ(qwen->close, "\n</tool_call>");
  EXPECT_EQ(qwen->arguments_key, "arguments");
  EXPECT_FALSE(qwen->in_array);

  const auto llama = format_of("llama3");
  ASSERT_TRUE(llama.is_ok()) << llama.status().message();
  EXPECT_EQ(llama->open, "");
  EXPECT_EQ(llama->arguments_key, "parameters");
  EXPECT_FALSE(llama->in_array);

  const auto mistral = format_of_text(kMistral);
  ASSERT_TRUE(mistral.is_ok()) << mistral.status().message();
  EXPECT_EQ(mistral->open, "");
  EXPECT_EQ(mistral->arguments_key, "arguments");
  EXPECT_TRUE(mistral->in_array);
}

TEST(ToolCallFormat, TemplatesWithoutToolsOrInAnotherForm) {
  for (const char* name : {"chatml", "llava15", "gemma", "zephyr"}) {
    const auto format = format_of(name);
    EXPECT_EQ(format.status().code(), StatusCode::kUnsupported) << name;
    EXPECT_THAT(format.status().message(), HasSubstr("no place for tools")) << name;
  }
  const auto tools_only =
      format_of_text("{{ tools }}{% for m in messages %}{{ m.content }}{% endfor %}");
  EXPECT_THAT(tools_only.status().message(), HasSubstr("no place for tools"));
  for (const char* call :
       {"<function={{ c.function.name }}>{{ c.function.arguments | tojson }}</function>",
        "{{ c | tojson }}", "{\"tool\": {{ c.function.name | tojson }}}",
        "{{ c.function.name }}"}) {
    const auto format = format_of_text(
        std::string("{{ tools }}{% for m in messages %}{% for c in m.tool_calls or [] %}") + call +
        "{% endfor %}{% endfor %}");
    EXPECT_THAT(format.status().message(), HasSubstr("not known here")) << call;
  }
}

struct Parsed {
  std::string text;
  std::vector<std::string> calls;
};

/// The answer in pieces of `n` bytes.
Parsed parse(const ToolCallFormat& format, const std::string& answer, size_t n) {
  Parsed out;
  ToolCallParser parser(format);
  const auto take = [&](const ToolCallParser::Output& o) {
    out.text += o.text;
    for (const ToolCall& call : o.calls) out.calls.push_back(call.name + call.arguments);
  };
  for (size_t i = 0; i < answer.size(); i += n) take(parser.push(answer.substr(i, n)));
  take(parser.end());
  return out;
}

struct AnswerCase {
  std::string answer;
  std::string text;
  std::vector<std::string> calls;
};

void expect_parsed(const ToolCallFormat& format, const std::vector<AnswerCase>& cases) {
  for (const AnswerCase& c : cases) {
    for (const size_t n : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{1000}}) {
      const Parsed parsed = parse(format, c.answer, n);
      EXPECT_EQ(parsed.text, c.text) << c.answer << " by " << n;
      EXPECT_EQ(parsed.calls, c.calls) << c.answer << " by " << n;
    }
  }
}

TEST(ToolCallParser, TaggedCalls) {
  const ToolCallFormat format{.open = "<tool_call>\n", .close = "\n</tool_call>"};
  const std::string call =
      "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1]}}\n</tool_call>";
  expect_parsed(
      format,
      {{"", "", {}},
       {"plain < text <tool", "plain < text <tool", {}},
       {call, "", {"f{\"a\":[1]}"}},
       {"Let me see.\n" + call, "Let me see.\n", {"f{\"a\":[1]}"}},
       {call + "\n" + call + "\n", "", {"f{\"a\":[1]}", "f{\"a\":[1]}"}},
       {call + " then", "then", {"f{\"a\":[1]}"}},
       {"<tool_call>{\"name\":\"g\"}</tool_call>", "", {"g{}"}},
       {"<tool_call>{\"name\":\"f\",\"parameters\":{}}</tool_call>", "", {"f{}"}},
       // Without the last tag, as models end their answers.
       {"<tool_call>\n{\"name\": \"f\", \"arguments\": {}}", "", {"f{}"}},
       // What is no call stays text, tags and all.
       {"<tool_call>what?</tool_call>!", "<tool_call>what?</tool_call>!", {}},
       {"<tool_call>{\"name\": 5}</tool_call>", "<tool_call>{\"name\": 5}</tool_call>", {}},
       {"<tool_call>{\"name\":\"f\",\"arguments\":\"x\"}</tool_call>",
        "<tool_call>{\"name\":\"f\",\"arguments\":\"x\"}</tool_call>",
        {}},
       {"<tool_call>{\"name\": \"f\", \"argum", "<tool_call>{\"name\": \"f\", \"argum", {}}});
}

TEST(ToolCallParser, BareCalls) {
  const ToolCallFormat format{.open = "", .close = "", .arguments_key = "parameters"};
  expect_parsed(format,
                {{"", "", {}},
                 {" \n", " \n", {}},
                 {"Hello {\"name\": \"f\"}", "Hello {\"name\": \"f\"}", {}},
                 {"{\"name\": \"f\", \"parameters\": {\"b\": \"}\"}}", "", {"f{\"b\":\"}\"}"}},
                 {"[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\"}]", "", {"f{}", "g{}"}},
                 {"{\"answer\": 5}", "{\"answer\": 5}", {}},
                 {"[1, 2]", "[1, 2]", {}},
                 {"[]", "[]", {}},
                 {"[{\"name\": \"f\"}, 5]", "[{\"name\": \"f\"}, 5]", {}},
                 {"{\"name\": \"f\"", "{\"name\": \"f\"", {}}});
}

class ForcedCalls : public ::testing::Test {
 protected:
  void SetUp() override {
    tokenizer_ = goldens::load_tokenizer("llama2");
    compiler_ = GrammarCompiler::make(tokenizer_).value();
    tools_ = *parse_json(R"([
      {"type": "function", "function": {"name": "f", "parameters": {"type": "object",
        "properties": {"at": {"$ref": "#/$defs/place"}}, "required": ["at"],
        "additionalProperties": false, "$defs": {"place": {"enum": ["here", "there"]}}}}},
      {"type": "function", "function": {"name": "g"}},
      {"type": "function", "function": {"name": "h", "parameters": {"type": "object",
        "properties": {"at": {"$ref": "#/$defs/place"}}, "required": ["at"],
        "additionalProperties": false, "$defs": {"place": {"type": "integer"}}}}}])");
  }
  /// Whether the whole text is an answer of the grammar.
  bool accepts(const GrammarSpec& grammar, const std::string& text) {
    auto matcher = compiler_->compile(grammar.kind, grammar.text);
    EXPECT_TRUE(matcher.is_ok()) << matcher.status().message() << grammar.text;
    if (!matcher.is_ok()) return false;
    const auto ids = tokenizer_->encode("\n" + text, false).value();
    const auto line = tokenizer_->encode("\n", false).value();
    for (size_t i = line.size(); i < ids.size(); ++i) {
      if (!matcher->consume(ids[i]).is_ok()) return false;
    }
    return matcher->is_accepting();
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const GrammarCompiler> compiler_;
  Json tools_;
};

TEST_F(ForcedCalls, Tagged) {
  const ToolCallFormat format{.open = "<tool_call>\n", .close = "\n</tool_call>"};
  const std::string f =
      "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"at\": \"here\"}}\n</tool_call>";
  const std::string h = "<tool_call>\n{\"name\": \"h\", \"arguments\": {\"at\": 5}}\n</tool_call>";
  const GrammarSpec any = forced_call_grammar(format, tools_, {{"f", "g", "h"}, true});
  EXPECT_TRUE(accepts(any, f));
  EXPECT_TRUE(accepts(any, f + "\n" + h));
  EXPECT_TRUE(accepts(any, "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>"));
  EXPECT_FALSE(accepts(any, ""));
  EXPECT_FALSE(accepts(any, "Hello"));
  EXPECT_FALSE(accepts(any, f + "Hello"));
  EXPECT_FALSE(
      accepts(any, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"at\": 5}}\n</tool_call>"));
  const GrammarSpec one = forced_call_grammar(format, tools_, {{"h"}, false});
  EXPECT_TRUE(accepts(one, h));
  EXPECT_FALSE(accepts(one, f));
  EXPECT_FALSE(accepts(one, h + "\n" + h));
}

TEST_F(ForcedCalls, Bare) {
  const GrammarSpec llama = forced_call_grammar(
      {.open = "", .close = "", .arguments_key = "parameters"}, tools_, {{"f", "h"}, true});
  EXPECT_TRUE(accepts(llama, R"({"name": "h", "parameters": {"at": 7}})"));
  EXPECT_FALSE(accepts(llama, R"({"name": "h", "parameters": {"at": 7}}{)"));
  const GrammarSpec mistral =
      forced_call_grammar({.open = "", .close = "", .in_array = true}, tools_, {{"f", "h"}, true});
  const std::string h = R"({"name": "h", "arguments": {"at": 7}})";
  EXPECT_TRUE(accepts(mistral, "[" + h + "]"));
  EXPECT_TRUE(accepts(mistral, "[" + h + ", " + h + "]"));
  EXPECT_FALSE(accepts(mistral, h));
}

}  // namespace
}  // namespace triptych
