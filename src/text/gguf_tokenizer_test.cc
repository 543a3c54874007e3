#include "text/gguf_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parity/text_goldens.h"

namespace triptych {
namespace {

using ::testing::HasSubstr;

/// What a converter to GGUF would write for a tokenizer.json: the same vocabulary as arrays.
GgufTokenizerMetadata to_gguf(const std::string& kind, std::string model, std::string pre) {
  const auto json = parse_json_file(goldens::tokenizer_folder(kind) + "/tokenizer.json");
  EXPECT_TRUE(json.is_ok());
  const Json& bpe = *json->find("model");
  const auto tokenizer = goldens::load_tokenizer(kind);
  GgufTokenizerMetadata data;
  data.model = std::move(model);
  data.pre = std::move(pre);
  data.tokens.resize(tokenizer->vocab_size());
  data.token_types.assign(data.tokens.size(), 1);
  for (const auto& [token, id] : bpe.find("vocab")->members()) {
    data.tokens[static_cast<size_t>(id.int_value())] = token;
  }
  for (const Json& added : json->find("added_tokens")->elements()) {
    const auto id = static_cast<size_t>(added.find("id")->int_value());
    data.tokens[id] = added.find("content")->string_value();
    data.token_types[id] = added.find("special")->bool_value() ? 3 : 4;
  }
  if (data.model == "llama") {
    for (size_t i = 0; i < data.tokens.size(); ++i) data.scores.push_back(-static_cast<float>(i));
  } else {
    for (const Json& merge : bpe.find("merges")->elements()) {
      data.merges.push_back(merge.elements()[0].string_value() + " " +
                            merge.elements()[1].string_value());
    }
  }
  data.bos_id = tokenizer->bos_id();
  data.eos_id = tokenizer->eos_id();
  data.unknown_id = tokenizer->named_token_id("unk_token");
  return data;
}

struct Twin {
  std::string kind, model, pre;
};

class GgufTwins : public ::testing::TestWithParam<Twin> {};

TEST_P(GgufTwins, IdsEqualThoseOfTokenizerJson) {
  const Twin& twin = GetParam();
  const auto built = build_gguf_tokenizer(to_gguf(twin.kind, twin.model, twin.pre));
  ASSERT_TRUE(built.is_ok()) << built.status().message();
  const auto tokenizer = Tokenizer::from_json(built->tokenizer_json, built->config, "twin");
  ASSERT_TRUE(tokenizer.is_ok()) << tokenizer.status().message();
  const Json golden = goldens::read("ids/" + twin.kind + ".json");
  const auto strings = goldens::strings();
  for (size_t i = 0; i < strings.size(); ++i) {
    EXPECT_EQ(*(*tokenizer)->encode(strings[i], false),
              goldens::ids(golden.find("plain")->elements()[i]))
        << Json::string(strings[i]).dump();
    EXPECT_EQ(*(*tokenizer)->encode(strings[i], true),
              goldens::ids(golden.find("special")->elements()[i]));
    EXPECT_EQ((*tokenizer)->decode(goldens::ids(golden.find("plain")->elements()[i]), false),
              golden.find("decoded")->elements()[i].string_value());
  }
}

INSTANTIATE_TEST_SUITE_P(Twins, GgufTwins,
                         ::testing::Values(Twin{"smollm", "gpt2", "smollm"},
                                           Twin{"llama3", "gpt2", "llama-bpe"},
                                           Twin{"qwen2", "gpt2", "qwen2"},
                                           Twin{"llama2", "llama", "default"},
                                           Twin{"demo", "gpt2", "default"}),
                         [](const auto& twin) { return twin.param.kind; });

TEST(GgufTokenizer, RefusesWhatItDoesNotKnow) {
  GgufTokenizerMetadata data = to_gguf("smollm", "gpt2", "unheard-of");
  auto built = build_gguf_tokenizer(data);
  EXPECT_EQ(built.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(built.status().message(), HasSubstr("llama-bpe"));
  data.model = "bert";
  built = build_gguf_tokenizer(data);
  EXPECT_EQ(built.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(built.status().message(), HasSubstr("gpt2"));
}

TEST(GgufTokenizer, NamesTheKeyOfBrokenMetadata) {
  const GgufTokenizerMetadata good = to_gguf("smollm", "gpt2", "smollm");
  const auto error = [&](auto change) {
    GgufTokenizerMetadata data = good;
    change(data);
    const auto built = build_gguf_tokenizer(data);
    EXPECT_EQ(built.status().code(), StatusCode::kDataLoss);
    return built.status().message();
  };
  EXPECT_THAT(error([](auto& d) { d.tokens.clear(); }), HasSubstr("tokenizer.ggml.tokens"));
  EXPECT_THAT(error([](auto& d) { d.token_types.pop_back(); }), HasSubstr("token_type"));
  EXPECT_THAT(error([](auto& d) { d.scores = {1.0F}; }), HasSubstr("scores"));
  EXPECT_THAT(error([](auto& d) { d.merges[5] = "abc"; }), HasSubstr("merges[5]"));
  EXPECT_THAT(error([](auto& d) { d.merges[5] = "a b c"; }), HasSubstr("merges[5]"));
  EXPECT_THAT(error([](auto& d) { d.merges.clear(); }), HasSubstr("merges"));
  EXPECT_THAT(error([](auto& d) { d.tokens[7] = "\xff"; }), HasSubstr("tokens[7]"));
  EXPECT_THAT(error([](auto& d) { d.eos_id = 1'000'000; }), HasSubstr("eos_token_id"));
  EXPECT_THAT(error([](auto& d) {
                d.model = "llama";
                d.merges.clear();
              }),
              HasSubstr("scores"));
}

TEST(GgufTokenizer, AMergeOfUnknownTokensIsAnError) {
  GgufTokenizerMetadata data = to_gguf("smollm", "gpt2", "smollm");
  data.merges[0] = "no_such token";
  const auto built = build_gguf_tokenizer(data);
  ASSERT_TRUE(built.is_ok());
  const auto tokenizer = Tokenizer::from_json(built->tokenizer_json, built->config, "x.gguf");
  EXPECT_EQ(tokenizer.status().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace triptych
