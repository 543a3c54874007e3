#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "parity/text_goldens.h"
#include "text/chat_template.h"

namespace triptych {
namespace {

using ::testing::HasSubstr;

/// Loads and renders a hostile template and returns its error; measures how long this process
/// computed meanwhile.
Status run(const std::string& text, double* seconds = nullptr) {
  const auto tokenizer = goldens::load_tokenizer("llama2");
  ChatPrompt prompt;
  prompt.messages.push_back({.role = "user", .parts = {MessagePart::of_text("hi")}});
  const auto chat = ChatTemplate::from_text(text, tokenizer, "hostile.jinja");
  if (!chat.is_ok()) return chat.status();
  const std::clock_t begin = std::clock();
  const auto rendered = (*chat)->render(prompt);
  if (seconds != nullptr) *seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  return rendered.status();
}

TEST(TemplateLimits, HostileTemplatesEndWithAnError) {
  const std::pair<const char*, const char*> cases[] = {
      {"nested loops",
       "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}"
       "{{ a }}{% endfor %}{% endfor %}{% endfor %}"},
      {"endless output", "{% for a in range(99999) %}{{ 'xxxxxxxxxx' * 1000 }}{% endfor %}"},
      {"doubling by ~",
       "{% set n = namespace(s='xx') %}{% for a in range(60) %}{% set n.s = n.s ~ n.s %}"
       "{% endfor %}{{ n.s | length }}"},
      {"doubling by +",
       "{% set n = namespace(s='xx') %}{% for a in range(60) %}{% set n.s = n.s + n.s %}"
       "{% endfor %}{{ n.s | length }}"},
      {"doubling by replace",
       "{% set n = namespace(s='x') %}{% for a in range(60) %}"
       "{% set n.s = n.s | replace('x', 'xx') %}{% endfor %}{{ n.s | length }}"},
      {"doubling by capture",
       "{% set n = namespace(s='x') %}{% for a in range(60) %}{% set t %}{{ n.s }}{{ n.s }}"
       "{% endset %}{% set n.s = t %}{% endfor %}{{ n.s | length }}"},
      {"recursion", "{% macro m(s) %}{{ m(s ~ s) }}{% endmacro %}{{ m('x') }}"},
      {"giant repeat", "{{ 'x' * 99999999999 }}"},
      {"giant list", "{{ ([1] * 99999999999) | list | length }}"},
      {"giant sum", "{{ ([1] * 99999999999) | sum }}"},
      {"giant power", "{{ 9 ** 999999 }}"},
      {"slow comparisons",
       "{% set s = 'x' * 9000000 %}{% set t = 'x' * 9000000 %}"
       "{% for a in range(99999) %}{% set b = s == t %}{% endfor %}"},
      {"many copies",
       "{% set s = 'x' * 9000000 %}{% set n = namespace(l=[]) %}{% for a in range(9999) %}"
       "{% set n.l = n.l + [s[1:]] %}{% endfor %}"},
      {"wide indent", "{{ 'x' | indent(999999999, true) }}"},
      {"wide format", "{{ '%999999999d' | format(1) }}"}};
  for (const auto& [name, text] : cases) {
    double seconds = 0;
    const Status status = run(text, &seconds);
    EXPECT_FALSE(status.is_ok()) << name;
    EXPECT_THAT(status.message(), HasSubstr("hostile.jinja")) << name;
    EXPECT_LT(seconds, 1.0) << name << ": " << status.message();
  }
}

TEST(TemplateLimits, DeepNestingDoesNotOverflowTheStack) {
  (void)run(
      "{% set n = namespace(l=[]) %}{% for a in range(99999) %}{% set n.l = [n.l] %}"
      "{% endfor %}{{ n.l }}");
  (void)run(
      "{% set n = namespace(l=[]) %}{% for a in range(99999) %}{% set n.l = [n.l] %}"
      "{% endfor %}{{ n.l | tojson }}");
  (void)run("{{ " + std::string(200'000, '(') + "1" + std::string(200'000, ')') + " }}");
  (void)run("{{ " + std::string(100'000, '-') + "1 }}");
}

TEST(TemplateLimits, NoWayToTheMachine) {
  for (const char* text :
       {"{{ ''.__class__.__mro__[1].__subclasses__() }}", "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}{{ os }}", "{{ self.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}", "{{ messages.append(1) }}"}) {
    EXPECT_FALSE(run(text).is_ok()) << text;
  }
}

// Some 0.15 s of work each on a machine where each thread gets a fraction of a core.
TEST(TemplateLimits, ABusyMachineDoesNotEndAGoodTemplate) {
#if defined(__SANITIZE_THREAD__)
  constexpr int kBytes = 1000000;  // copies and comparisons take many times as long
#else
  constexpr int kBytes = 9000000;
#endif
  const std::string slow = fmt::format(
      "{{% set s = 'x' * {0} %}}{{% set t = 'x' * {0} %}}"
      "{{% for a in range(40) %}}{{% set b = s == t %}}{{% endfor %}}ok",
      kBytes);
  const unsigned n_threads = 8 * std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::future<Status>> renderings;
  for (unsigned i = 0; i < n_threads; ++i) {
    renderings.push_back(std::async(std::launch::async, [&slow] { return run(slow); }));
  }
  for (std::future<Status>& rendering : renderings) {
    const Status status = rendering.get();
    EXPECT_TRUE(status.is_ok()) << status.message();
  }
}

TEST(TemplateLimits, ATemplateThatWasGivenUpIsNotRunAgain) {
  const auto tokenizer = goldens::load_tokenizer("llama2");
  const auto chat = ChatTemplate::from_text(
      "{% if messages[0].content == 'bad' %}{% set n = namespace(s='xx') %}"
      "{% for a in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}{% endif %}ok",
      tokenizer, "t.jinja");
  ASSERT_TRUE(chat.is_ok());
  ChatPrompt prompt;
  prompt.messages.push_back({.role = "user", .parts = {MessagePart::of_text("good")}});
  EXPECT_TRUE((*chat)->render(prompt).is_ok());
  prompt.messages[0].parts[0].text = "bad";
  EXPECT_FALSE((*chat)->render(prompt).is_ok());
  prompt.messages[0].parts[0].text = "good";
  const auto again = (*chat)->render(prompt);
  EXPECT_THAT(again.status().message(), HasSubstr("not run again"));
}

TEST(TemplateLimits, LongConversationsFit) {
  const auto tokenizer = goldens::load_tokenizer("qwen2");
  const auto chat =
      ChatTemplate::from_file(goldens::kFolder + "templates/qwen_tools.jinja", tokenizer);
  ChatPrompt prompt;
  for (int i = 0; i < 1000; ++i) {
    const std::string role = i % 2 == 0 ? "user" : "assistant";
    prompt.messages.push_back(
        {.role = role, .parts = {MessagePart::of_text(std::string(2000, 'a' + i % 26))}});
  }
  prompt.messages.push_back({.role = "user", .parts = {MessagePart::of_text("end")}});
  const auto rendered = (*chat)->render(prompt);
  ASSERT_TRUE(rendered.is_ok()) << rendered.status().message();
  EXPECT_GT(rendered->text.size(), 2'000'000u);
}

}  // namespace
}  // namespace triptych
