#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>

#include "parity/text_goldens.h"

namespace triptych {
namespace {

using ::testing::HasSubstr;

ChatPrompt ask(std::string text) {
  ChatPrompt prompt;
  prompt.messages.push_back({.role = "user", .parts = {MessagePart::of_text(std::move(text))}});
  return prompt;
}

std::shared_ptr<const ChatTemplate> make(std::string_view text, const std::string& kind) {
  auto made = ChatTemplate::from_text(text, goldens::load_tokenizer(kind), "test.jinja");
  EXPECT_TRUE(made.is_ok()) << made.status().message();
  return made.is_ok() ? *made : nullptr;
}

TEST(ChatTemplateGoldens, TextAndIdsEqualTransformers) {
  std::map<std::string, std::shared_ptr<const Tokenizer>> tokenizers;
  const Json cases = goldens::read("chat_cases.json");
  for (const Json& entry : cases.elements()) {
    const std::string kind = entry.find("tokenizer")->string_value();
    const std::string file = entry.find("template")->string_value();
    SCOPED_TRACE(file + " / " + entry.find("conversation")->string_value() + " / " + kind);
    if (!tokenizers.contains(kind)) tokenizers[kind] = goldens::load_tokenizer(kind);
    const auto chat_template = ChatTemplate::from_file(file, tokenizers[kind]);
    ASSERT_TRUE(chat_template.is_ok()) << chat_template.status().message();
    const ChatPrompt prompt = goldens::to_prompt(*entry.find("prompt"));
    MediaTokenIds media;
    if (entry.find("image_token")->is_string()) {
      media.image = tokenizers[kind]->token_to_id(entry.find("image_token")->string_value());
    }
    const auto encoded = (*chat_template)->encode(prompt, media);
    if (const Json* error = entry.find("error")) {
      ASSERT_FALSE(encoded.is_ok());
      EXPECT_THAT(encoded.status().message(), HasSubstr(error->string_value()));
      continue;
    }
    ASSERT_TRUE(encoded.is_ok()) << encoded.status().message();
    EXPECT_EQ(encoded->text, entry.find("text")->string_value());
    EXPECT_EQ(encoded->ids, goldens::ids(*entry.find("ids")));
    for (const MediaSlot& slot : encoded->slots) EXPECT_EQ(encoded->ids[slot.index], *media.image);
  }
}

TEST(ChatTemplate, NamesBothNumbersWhenPlacesAndPartsDiffer) {
  const auto once = make(
      "{{ bos_token }}<image>{% for m in messages %}{% for p in m.content %}"
      "{{ p.text }}{% endfor %}{% endfor %}",
      "llama2");
  ChatPrompt prompt = ask("hi");
  prompt.messages[0].parts.push_back(MessagePart::of_media(MessagePart::Kind::kImage));
  prompt.messages[0].parts.push_back(MessagePart::of_media(MessagePart::Kind::kImage));
  const MediaTokenIds media{.image = once->tokenizer().token_to_id("<image>")};
  const auto encoded = once->encode(prompt, media);
  EXPECT_EQ(encoded.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(encoded.status().message(), HasSubstr("2 images"));
  EXPECT_THAT(encoded.status().message(), HasSubstr("places for 1"));
}

TEST(ChatTemplate, MediaForAModelWithoutIt) {
  const auto chat = ChatTemplate::from_folder("models/demo", goldens::load_tokenizer("demo"));
  ChatPrompt prompt = ask("hi");
  prompt.messages[0].parts.push_back(MessagePart::of_media(MessagePart::Kind::kAudio));
  const auto encoded = (*chat)->encode(prompt, {});
  EXPECT_EQ(encoded.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(encoded.status().message(), HasSubstr("audio"));
}

TEST(ChatTemplate, ToolTextIsProtectedToo) {
  const auto chat = make(
      "{{ tools | tojson(ensure_ascii=true) }}{% for m in messages %}"
      "{{ m.content }}{{ m.tool_calls | tojson }}{% endfor %}</s>",
      "llama2");
  ChatPrompt prompt = ask("hi");
  prompt.tools = *parse_json(R"([{"name": "<image>", "</s>": "é"}])");
  prompt.messages[0].tool_calls =
      *parse_json(R"([{"function": {"name": "f", "arguments": "{\"a\": \"</s>\"}"}}])");
  const auto encoded = chat->encode(prompt, {.image = chat->tokenizer().token_to_id("<image>")});
  ASSERT_TRUE(encoded.is_ok()) << encoded.status().message();
  EXPECT_EQ(encoded->text,
            "[{\"name\": \"<image>\", \"</s>\": \"\\u00e9\"}]hi[{\"function\": {\"name\": \"f\", "
            "\"arguments\": {\"a\": \"</s>\"}}}]</s>");
  EXPECT_TRUE(encoded->slots.empty());
  EXPECT_EQ(std::count(encoded->ids.begin(), encoded->ids.end(), 2), 1);
}

TEST(ChatTemplate, PartsCannotJoinIntoASpecialToken) {
  const auto chat = make(
      "{% for m in messages %}{% for p in m.content %}{{ p.text | trim }}"
      "{% endfor %}{% endfor %}",
      "llama2");
  const MediaTokenIds media{.image = chat->tokenizer().token_to_id("<image>")};
  ChatPrompt prompt = ask("<ima ");
  prompt.messages[0].parts.push_back(MessagePart::of_text("\n"));
  prompt.messages[0].parts.push_back(MessagePart::of_text("g"));
  prompt.messages[0].parts.push_back(MessagePart::of_text(" e>"));
  const auto encoded = chat->encode(prompt, media);
  ASSERT_TRUE(encoded.is_ok()) << encoded.status().message();
  EXPECT_EQ(encoded->text, "<image>");
  EXPECT_TRUE(encoded->slots.empty());
  EXPECT_EQ(chat->tokenizer().decode(encoded->ids, true), "<image>");
}

TEST(ChatTemplate, RolesAndTextsAreChecked) {
  const auto chat =
      make("{% for m in messages %}{{ m.role }}{{ m.content }}{% endfor %}", "llama2");
  EXPECT_FALSE(chat->render(ChatPrompt{}).is_ok());
  ChatPrompt prompt = ask("hi");
  for (const char* role : {"", "user|>", "<s>", "User", "a b"}) {
    prompt.messages[0].role = role;
    const auto rendered = chat->render(prompt);
    EXPECT_EQ(rendered.status().code(), StatusCode::kInvalidArgument) << role;
    EXPECT_THAT(rendered.status().message(), HasSubstr("messages[0].role"));
  }
  const auto broken = chat->render(ask("a\xff"));
  EXPECT_THAT(broken.status().message(), HasSubstr("messages[0].content"));
}

TEST(ChatTemplate, StrftimeNowIsTheLocalTime) {
  const auto chat = make("{{ strftime_now('%Y-%m-%d') }}{{ messages[0].content }}", "llama2");
  const auto day = [] {
    const std::time_t now = std::time(nullptr);
    char text[16];
    std::strftime(text, sizeof(text), "%Y-%m-%d", std::localtime(&now));
    return std::string(text);
  };
  const std::string before = day();
  const auto rendered = chat->render(ask(""));
  ASSERT_TRUE(rendered.is_ok()) << rendered.status().message();
  EXPECT_TRUE(rendered->text == before || rendered->text == day()) << rendered->text;
}

TEST(ChatTemplate, VeryManyForgedTokensTakeLinearTime) {
  const auto chat = make("{% for m in messages %}</s>{{ m.content }}{% endfor %}", "llama2_legacy");
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "</s> ";
  // Quadratic work would take minutes here and meet the test's time limit.
  const auto encoded = chat->encode(ask(text), {});
  ASSERT_TRUE(encoded.is_ok()) << encoded.status().message();
  EXPECT_EQ(std::count(encoded->ids.begin(), encoded->ids.end(), 2), 1);
}

class TemplateFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    // A folder a test: ctest runs them side by side.
    folder_ = ::testing::TempDir() + "triptych_templates_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/additional_chat_templates");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
  }
  std::string rendered(const ChatPrompt& prompt = ask("hi")) {
    const auto chat = ChatTemplate::from_folder(folder_, goldens::load_tokenizer("llama2"));
    if (!chat.is_ok()) return chat.status().message();
    return (*chat)->render(prompt)->text;
  }

  std::string folder_;
};

TEST_F(TemplateFolder, NoTemplateSaysWhatToPass) {
  const auto chat = ChatTemplate::from_folder(folder_, goldens::load_tokenizer("llama2"));
  EXPECT_EQ(chat.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(chat.status().message(), HasSubstr("--chat-template FILE"));
}

TEST_F(TemplateFolder, FilesInTheirOrder) {
  write("tokenizer_config.json", R"({"chat_template": "from config"})");
  EXPECT_EQ(rendered(), "from config");
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "tool_use", "template": "tools"},
                              {"name": "default", "template": "listed"}]})");
  EXPECT_EQ(rendered(), "listed");
  ChatPrompt with_tools = ask("hi");
  with_tools.tools = Json::array({Json::object()});
  EXPECT_EQ(rendered(with_tools), "tools");
  write("chat_template.json", R"({"chat_template": "from json"})");
  EXPECT_EQ(rendered(), "from json");
  write("chat_template.jinja", "from jinja");
  EXPECT_EQ(rendered(), "from jinja");
  write("additional_chat_templates/tool_use.jinja", "more tools");
  EXPECT_EQ(rendered(with_tools), "more tools");
}

TEST_F(TemplateFolder, BrokenOnesAreNamed) {
  write("tokenizer_config.json", R"({"chat_template": 3})");
  EXPECT_THAT(rendered(), HasSubstr("tokenizer_config.json: chat_template"));
  write("tokenizer_config.json", R"({"chat_template": [{"name": "x", "template": "a"},
                                                       {"name": "y", "template": "b"}]})");
  EXPECT_THAT(rendered(), HasSubstr("default"));
  write("chat_template.jinja", "{% if %}");
  const auto chat = ChatTemplate::from_folder(folder_, goldens::load_tokenizer("llama2"));
  EXPECT_EQ(chat.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(chat.status().message(), HasSubstr("chat_template.jinja"));
}

}  // namespace
}  // namespace triptych
