#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "parity/text_goldens.h"
#include "text/text_guard.h"

namespace triptych {
namespace {

class DetokenizerKinds : public ::testing::TestWithParam<std::string> {};

TEST_P(DetokenizerKinds, PiecesAreWholeCharactersAndJoinToTheText) {
  const auto tokenizer = goldens::load_tokenizer(GetParam());
  for (const std::string& text : goldens::strings()) {
    const auto ids = tokenizer->encode(text, true);
    ASSERT_TRUE(ids.is_ok());
    StreamingDetokenizer stream(tokenizer, true);
    std::string joined;
    const bool has_own = text.find("\xEF\xBF\xBD") != std::string::npos;
    for (const TokenId id : *ids) {
      const std::string piece = stream.push(id);
      EXPECT_EQ(find_invalid_utf8(piece), std::string::npos);
      if (!has_own) {
        EXPECT_EQ(piece.find("\xEF\xBF\xBD"), std::string::npos);
      }
      joined += piece;
    }
    joined += stream.flush();
    EXPECT_EQ(joined, tokenizer->decode(*ids, true)) << Json::string(text).dump();
  }
}

TEST_P(DetokenizerKinds, RandomIdsStreamAsTheyDecode) {
  const auto tokenizer = goldens::load_tokenizer(GetParam());
  std::mt19937 random(7);
  std::uniform_int_distribution<TokenId> pick(0, static_cast<TokenId>(tokenizer->vocab_size()) + 3);
  for (int round = 0; round < 50; ++round) {
    std::vector<TokenId> ids(60);
    for (TokenId& id : ids) id = pick(random);
    StreamingDetokenizer stream(tokenizer, false);
    std::string joined;
    for (const TokenId id : ids) {
      joined += stream.push(id);
      EXPECT_EQ(find_invalid_utf8(joined), std::string::npos);
    }
    joined += stream.flush();
    EXPECT_EQ(joined, tokenizer->decode(ids, false));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DetokenizerKinds, ::testing::ValuesIn(goldens::tokenizer_kinds()));

TEST(StreamingDetokenizer, HoldsTheBytesOfACharacter) {
  const auto tokenizer = goldens::load_tokenizer("llama2");
  StreamingDetokenizer stream(tokenizer);
  const auto byte = [&](const char* name) { return *tokenizer->token_to_id(name); };
  EXPECT_EQ(stream.push(byte("<0xF0>")), "");
  EXPECT_EQ(stream.push(byte("<0x9F>")), "");
  EXPECT_EQ(stream.push(byte("<0x98>")), "");
  EXPECT_EQ(stream.push(byte("<0x80>")), "😀");
  EXPECT_EQ(stream.push(byte("<0xF0>")), "");
  EXPECT_EQ(stream.flush(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.flush(), "");
}

TEST(StreamingDetokenizer, KeepsTheSpaceBehindASkippedSpecialToken) {
  const auto tokenizer = goldens::load_tokenizer("llama2");
  const auto ids = tokenizer->encode("a </s> b", false);
  StreamingDetokenizer stream(tokenizer, true);
  std::string joined;
  for (const TokenId id : *ids) joined += stream.push(id);
  EXPECT_EQ(joined, "a  b");
}

TEST(StreamingDetokenizer, IgnoresIdsWithoutAToken) {
  const auto tokenizer = goldens::load_tokenizer("qwen2");
  StreamingDetokenizer stream(tokenizer);
  EXPECT_EQ(stream.push(-1), "");
  EXPECT_EQ(stream.push(1 << 30), "");
  EXPECT_EQ(stream.flush(), "");
}

}  // namespace
}  // namespace triptych
