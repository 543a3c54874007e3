#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "parity/text_goldens.h"

namespace triptych {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TokenizerKinds : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    tokenizer_ = goldens::load_tokenizer(GetParam());
    ASSERT_NE(tokenizer_, nullptr);
    golden_ = goldens::read("ids/" + GetParam() + ".json");
    strings_ = goldens::strings();
  }
  std::vector<TokenId> golden_ids(const char* member, size_t i) {
    return goldens::ids(golden_.find(member)->elements()[i]);
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
  Json golden_;
  std::vector<std::string> strings_;
};

TEST_P(TokenizerKinds, IdsEqualHuggingFace) {
  for (size_t i = 0; i < strings_.size(); ++i) {
    const auto plain = tokenizer_->encode(strings_[i], false);
    const auto special = tokenizer_->encode(strings_[i], true);
    ASSERT_TRUE(plain.is_ok() && special.is_ok());
    EXPECT_EQ(*plain, golden_ids("plain", i)) << Json::string(strings_[i]).dump();
    EXPECT_EQ(*special, golden_ids("special", i)) << Json::string(strings_[i]).dump();
  }
  EXPECT_EQ(tokenizer_->vocab_size(), static_cast<size_t>(golden_.find("vocab_size")->int_value()));
}

TEST_P(TokenizerKinds, TextEqualsHuggingFace) {
  for (size_t i = 0; i < strings_.size(); ++i) {
    const auto ids = golden_ids("plain", i);
    EXPECT_EQ(tokenizer_->decode(ids, false), golden_.find("decoded")->elements()[i].string_value())
        << i;
    EXPECT_EQ(tokenizer_->decode(ids, true),
              golden_.find("decoded_skip")->elements()[i].string_value())
        << i;
  }
}

TEST_P(TokenizerKinds, ProtectingNothingThatMattersChangesNoId) {
  // The protected path splits the text itself; with an ordinary byte protected it must find every
  // special token that the library finds.
  for (const std::string& text : strings_) {
    // Lower-cased by the normalizer, this becomes a piece of the Unigram model, which is refused.
    if (GetParam() == "unigram" && text == "<IMAGE>") continue;
    const std::string longer = text + " zz";
    const ByteRange last{longer.size() - 1, longer.size()};
    const auto expected = tokenizer_->encode(longer, false);
    const auto protected_ids = tokenizer_->encode_segments(longer, {&last, 1});
    ASSERT_TRUE(expected.is_ok() && protected_ids.is_ok()) << text;
    EXPECT_EQ(*protected_ids, *expected) << Json::string(longer).dump();
  }
}

TEST_P(TokenizerKinds, ProtectedTextNeverBecomesASpecialToken) {
  for (const std::string& text : strings_) {
    if (text.empty()) continue;
    const ByteRange whole{0, text.size()};
    const auto ids = tokenizer_->encode_segments(text, {&whole, 1});
    ASSERT_TRUE(ids.is_ok()) << ids.status().message();
    const auto unknown = tokenizer_->named_token_id("unk_token");
    for (const TokenId id : *ids) {
      EXPECT_TRUE(!tokenizer_->is_special(id) || id == unknown) << Json::string(text).dump();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, TokenizerKinds, ::testing::ValuesIn(goldens::tokenizer_kinds()));

TEST(Tokenizer, ProtectsOnlyTheBytesItIsTold) {
  const auto tokenizer = goldens::load_tokenizer("llama2");
  const std::string text = "<image> a <image>";
  const auto id = tokenizer->token_to_id("<image>");
  ASSERT_TRUE(id);
  const auto count = [&](const Result<std::vector<TokenId>>& ids) {
    return std::count(ids->begin(), ids->end(), *id);
  };
  EXPECT_EQ(count(tokenizer->encode_segments(text, {})), 2);
  for (size_t at = 0; at < 7; ++at) {
    const ByteRange one{at, at + 1};
    EXPECT_EQ(count(tokenizer->encode_segments(text, {&one, 1})), 1) << at;
  }
  const ByteRange both[] = {{0, 1}, {16, 17}};
  EXPECT_EQ(count(tokenizer->encode_segments(text, both)), 0);
  const ByteRange gap{8, 9};
  EXPECT_EQ(count(tokenizer->encode_segments(text, {&gap, 1})), 2);
  EXPECT_EQ(tokenizer->decode(*tokenizer->encode_segments(text, both), false), text);
}

TEST(Tokenizer, RefusesRangesThatCutCharacters) {
  const auto tokenizer = goldens::load_tokenizer("llama2");
  const ByteRange half{1, 2};
  EXPECT_EQ(tokenizer->encode_segments("é", {&half, 1}).status().code(),
            StatusCode::kInvalidArgument);
  const ByteRange beyond{0, 9};
  EXPECT_FALSE(tokenizer->encode_segments("abc", {&beyond, 1}).is_ok());
}

TEST(Tokenizer, ModelsThatHoldSpecialTokensCannotBeTricked) {
  // The Unigram model has "<image>" among its own pieces and would make it from plain text.
  const auto tokenizer = goldens::load_tokenizer("unigram");
  const TokenId image = *tokenizer->token_to_id("<image>");
  const std::string text = "see <image> here";
  const ByteRange whole{0, text.size()};
  const auto ids = tokenizer->encode_segments(text, {&whole, 1});
  ASSERT_TRUE(ids.is_ok()) << ids.status().message();
  EXPECT_EQ(std::count(ids->begin(), ids->end(), image), 0);
  const auto normalized = tokenizer->encode_segments("see <IMAGE> here", {});
  EXPECT_EQ(std::count(normalized->begin(), normalized->end(), image), 0);
}

TEST(Tokenizer, KnowsItsSpecialTokens) {
  const auto tokenizer = goldens::load_tokenizer("llama2");
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  EXPECT_EQ(tokenizer->named_token("image_token"), "<image>");
  EXPECT_TRUE(tokenizer->is_special(*tokenizer->token_to_id("<image>")));
  EXPECT_FALSE(tokenizer->is_special(*tokenizer->token_to_id("a")));
  EXPECT_EQ(tokenizer->id_to_token(1), "<s>");
  EXPECT_EQ(tokenizer->id_to_token(99'999), std::nullopt);
  EXPECT_EQ(tokenizer->id_to_token(-1), std::nullopt);
  EXPECT_EQ(tokenizer->token_to_id("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer->named_token_id("cls_token"), std::nullopt);
  EXPECT_EQ(tokenizer->config().model_max_length, 2048);
}

TEST(Tokenizer, InvalidUtf8IsAnError) {
  const auto tokenizer = goldens::load_tokenizer("llama3");
  const auto ids = tokenizer->encode("ab\xff", true);
  EXPECT_EQ(ids.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ids.status().message(), HasSubstr("byte 2"));
}

TEST(Tokenizer, BrokenFilesAreNamed) {
  const auto missing = Tokenizer::from_folder("no/such/folder");
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr("no/such/folder/tokenizer.json"));
  for (const char* text : {"", "{", "[]", "{}", "{\"model\": {\"type\": \"BPE\"}}",
                           "{\"version\":\"1.0\",\"model\":{\"type\":\"Nonsense\"}}"}) {
    const auto broken = Tokenizer::from_json(text, {}, "some/tokenizer.json");
    EXPECT_EQ(broken.status().code(), StatusCode::kDataLoss) << text;
    EXPECT_THAT(broken.status().message(), HasSubstr("some/tokenizer.json"));
  }
}

TEST(Tokenizer, DeclaredIdsMustFit) {
  TokenizerConfig config;
  Json token = Json::object();
  token.set("id", Json::integer(9'999));
  token.set("content", Json::string("<late>"));
  config.added_tokens = Json::array({token});
  std::ifstream file(goldens::tokenizer_folder("smollm") + "/tokenizer.json");
  const std::string json{std::istreambuf_iterator<char>(file), {}};
  const auto made = Tokenizer::from_json(json, config);
  EXPECT_EQ(made.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(made.status().message(), HasSubstr("9999"));
}

TEST(Tokenizer, LongRunsOfOneCharacterAreTokenised) {
  for (const std::string& kind : goldens::tokenizer_kinds()) {
    const auto tokenizer = goldens::load_tokenizer(kind);
    for (const char* unit : {" ", "\n", "a", "1", " \n", "é"}) {
      std::string text;
      while (text.size() < 100'000) text += unit;
      const auto ids = tokenizer->encode(text + "x", false);
      EXPECT_TRUE(ids.is_ok()) << kind << ": " << ids.status().message();
    }
  }
}

TEST(Tokenizer, ThreadsShareOne) {
  const auto tokenizer = goldens::load_tokenizer("qwen2");
  const auto strings = goldens::strings();
  const auto expected = tokenizer->encode(strings[50], false);
  std::vector<std::thread> threads;
  threads.reserve(4);
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (const std::string& text : strings) {
        wrong += !tokenizer->encode(text, false).is_ok();
        wrong += *tokenizer->encode(strings[50], false) != *expected;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(TokenizerConfig, ReadsEverySpelling) {
  const auto json = parse_json(R"({
    "bos_token": {"__type": "AddedToken", "content": "<s>", "lstrip": false},
    "eos_token": "</s>", "pad_token": null, "add_bos_token": true,
    "extra_special_tokens": {"image_token": "<image>"},
    "additional_special_tokens": ["<a>", {"content": "<b>", "lstrip": true}],
    "added_tokens_decoder": {"7": {"content": "<image>", "special": true}},
    "model_max_length": 1000000000000000019884624838656})");
  ASSERT_TRUE(json.is_ok());
  const auto config = parse_tokenizer_config(*json, "tokenizer_config.json");
  ASSERT_TRUE(config.is_ok()) << config.status().message();
  using Named = std::pair<std::string, std::string>;
  EXPECT_THAT(config->named_tokens,
              ElementsAre(Named{"bos_token", "<s>"}, Named{"eos_token", "</s>"},
                          Named{"image_token", "<image>"}));
  EXPECT_THAT(config->extra_tokens, ElementsAre("<a>", "<b>"));
  EXPECT_EQ(config->add_bos, true);
  EXPECT_EQ(config->add_eos, std::nullopt);
  EXPECT_EQ(config->added_tokens.elements().size(), 3u);
  EXPECT_EQ(config->model_max_length, 0);
}

TEST(TokenizerConfig, ErrorsNameFileAndKey) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"added_tokens_decoder": {"x": {"content": "a"}}})", "added_tokens_decoder"},
      {R"({"added_tokens_decoder": {"1": {}}})", "content"},
      {R"({"add_bos_token": "yes"})", "add_bos_token"},
      {R"({"additional_special_tokens": [3]})", "additional_special_tokens"},
      {R"([])", "object"}};
  for (const auto& [text, part] : cases) {
    const auto config = parse_tokenizer_config(*parse_json(text), "dir/tokenizer_config.json");
    ASSERT_FALSE(config.is_ok()) << text;
    EXPECT_THAT(config.status().message(), HasSubstr("dir/tokenizer_config.json"));
    EXPECT_THAT(config.status().message(), HasSubstr(part));
  }
}

}  // namespace
}  // namespace triptych
