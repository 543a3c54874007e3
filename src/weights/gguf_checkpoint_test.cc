#include "weights/gguf_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numbers>

#include "weights/checkpoint_fixture.h"
#include "weights/config_reader.h"

namespace triptych {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class GgufModel : public testing::Test {
 protected:
  Result<std::unique_ptr<Checkpoint>> open(const GgufWriter& w,
                                           const CheckpointOptions& options = {}) {
    return Checkpoint::open(folder_.write("m.gguf", w.bytes()), options);
  }
  Status error(const GgufWriter& w) { return open(w).status(); }
  TempFolder folder_;
};

TEST_F(GgufModel, GivesAHuggingFaceConfig) {
  const auto opened = open(tiny_llama_gguf(GgmlType::kQ8_0));
  ASSERT_TRUE(opened.is_ok()) << opened.status().message();
  const Checkpoint& c = **opened;
  EXPECT_TRUE(c.is_gguf());
  EXPECT_EQ(c.config().dump(),
            R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":32,)"
            R"("num_hidden_layers":2,"intermediate_size":64,"max_position_embeddings":64,)"
            R"("hidden_act":"silu","rms_norm_eps":9.999999747378752e-06,)"
            R"("num_attention_heads":2,"num_key_value_heads":1,"head_dim":16,"vocab_size":8,)"
            R"("bos_token_id":6,"pad_token_id":null,"eos_token_id":[7],"rope_theta":10000.0,)"
            R"("attention_bias":false,"mlp_bias":false,"tie_word_embeddings":true})");
  const auto reader = ConfigReader::create(c.config(), c.config_source());
  ASSERT_TRUE(reader.is_ok()) << reader.status().message();
  EXPECT_EQ(reader->text().value().get_int("num_hidden_layers", 1, 100).value(), 2);
}

TEST_F(GgufModel, GivesTokenizerMaterial) {
  const auto c = std::move(open(tiny_llama_gguf(GgmlType::kF16))).value();
  ASSERT_NE(c->gguf_vocabulary(), nullptr);
  const GgufVocabulary& v = *c->gguf_vocabulary();
  EXPECT_EQ(v.model, "gpt2");
  EXPECT_EQ(v.pre, "smollm");
  EXPECT_EQ(v.tokens.size(), 8u);
  EXPECT_EQ(v.scores.size(), 8u);
  EXPECT_THAT(v.merges, ElementsAre("a b"));
  EXPECT_EQ(v.token_types[6], 3);
  EXPECT_EQ(v.bos_id, 6);
  EXPECT_EQ(v.eos_id, 7);
  EXPECT_EQ(v.unknown_id, std::nullopt);
  EXPECT_EQ(v.add_bos, false);
  EXPECT_EQ(v.add_eos, std::nullopt);
  ASSERT_NE(c->gguf_chat_template(), nullptr);
  EXPECT_EQ(*c->gguf_chat_template(), "{{ messages }}");
}

TEST_F(GgufModel, GivesCanonicalTensors) {
  const auto c = std::move(open(tiny_llama_gguf(GgmlType::kQ4_0))).value();
  EXPECT_EQ(c->tensors().size(), 20u);
  const TensorInfo* up = c->find("text.layers.1.mlp.up_proj.weight");
  ASSERT_NE(up, nullptr);
  EXPECT_EQ(up->shape, (Shape{64, 32}));
  EXPECT_EQ(up->original_name, "blk.1.ffn_up.weight");
  EXPECT_EQ(up->stored_type, "Q4_0");
  EXPECT_EQ(up->dtype, DType::kBF16);
  EXPECT_EQ(up->n_bytes, 64u * 32 * 2);
  for (const TensorInfo& t : c->tensors()) EXPECT_TRUE(t.name.starts_with("text.")) << t.name;
}

TEST_F(GgufModel, UndoesTheRowOrderOfQAndK) {
  // Row r of q holds the value r; heads of 16 rows are stored as 0 8 1 9 2 10 ...
  GgufWriter w = tiny_llama_gguf(GgmlType::kF32);
  const auto c = std::move(open(w)).value();
  std::vector<std::byte> buffer;
  const auto rows_of = [&](const char* name) {
    const TensorInfo& info = *c->find(name);
    const auto data = c->read_rows(info, 0, info.shape[0], buffer);
    const auto* x = static_cast<const float*>(*data);
    std::vector<float> first;
    for (int64_t r = 0; r < info.shape[0]; ++r) first.push_back(x[r * 32]);
    return first;
  };
  const auto stored = [](int row) {  // first float of a stored row: bytes i * 7 % 0x30
    std::string bytes(4, '\0');
    for (int b = 0; b < 4; ++b)
      bytes[static_cast<size_t>(b)] = static_cast<char>((row * 128 + b) * 7 % 0x30);
    float v = 0;
    std::memcpy(&v, bytes.data(), 4);
    return v;
  };
  const std::vector<float> q = rows_of("text.layers.0.self_attn.q_proj.weight");
  for (int head = 0; head < 2; ++head) {
    for (int row = 0; row < 16; ++row) {
      const int from = head * 16 + (row < 8 ? 2 * row : 2 * (row - 8) + 1);
      EXPECT_EQ(q[static_cast<size_t>(head * 16 + row)], stored(from)) << head << " " << row;
    }
  }
  const std::vector<float> v = rows_of("text.layers.0.self_attn.v_proj.weight");
  for (int row = 0; row < 16; ++row) EXPECT_EQ(v[static_cast<size_t>(row)], stored(row));
}

TEST_F(GgufModel, RowBlocksEqualTheWhole) {
  for (const GgmlType type : {GgmlType::kF32, GgmlType::kF16, GgmlType::kBF16, GgmlType::kQ4_0,
                              GgmlType::kQ4_1, GgmlType::kQ8_0}) {
    const auto c = std::move(open(tiny_llama_gguf(type), {.gguf_quants = DType::kF16})).value();
    std::vector<std::byte> whole_buffer;
    std::vector<std::byte> buffer;
    for (const TensorInfo& t : c->tensors()) {
      const int64_t rows = row_count(t.shape);
      const auto row_bytes = static_cast<size_t>(row_elements(t.shape) * dtype_bytes(*t.dtype));
      const auto* whole =
          static_cast<const std::byte*>(c->read_rows(t, 0, rows, whole_buffer).value());
      for (int64_t r = 0; r < rows; r += 5) {
        const int64_t n = std::min<int64_t>(5, rows - r);
        const void* part = c->read_rows(t, r, n, buffer).value();
        EXPECT_EQ(std::memcmp(part, whole + static_cast<size_t>(r) * row_bytes,
                              static_cast<size_t>(n) * row_bytes),
                  0);
      }
      c->release(t);
    }
  }
}

TEST_F(GgufModel, AnOutputTensorUntiesTheHead) {
  GgufWriter w = tiny_llama_gguf(GgmlType::kF16);
  w.tensor("output.weight", GgmlType::kF16, {32, 8}, std::string(512, '\1'));
  const auto c = std::move(open(w)).value();
  EXPECT_FALSE(c->config().find("tie_word_embeddings")->bool_value());
  EXPECT_NE(c->find("lm_head.weight"), nullptr);
}

TEST_F(GgufModel, KeepsUnknownTensorsForStrictLoading) {
  GgufWriter w = tiny_llama_gguf(GgmlType::kF16);
  w.tensor("blk.0.attn_q_norm.weight", GgmlType::kF32, {16}, std::string(64, '\1'));
  w.tensor("blk.0.ffn_up_exps.weight", static_cast<GgmlType>(12), {256}, std::string(144, '\1'));
  const auto c = std::move(open(w)).value();
  EXPECT_NE(c->find("blk.0.attn_q_norm.weight"), nullptr);
  const TensorInfo* k_quant = c->find("blk.0.ffn_up_exps.weight");
  ASSERT_NE(k_quant, nullptr);
  std::vector<std::byte> buffer;
  const Status status = c->read_rows(*k_quant, 0, 1, buffer).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("stored as Q4_K"));
}

TEST_F(GgufModel, AddsTheEndOfTurnTokenToTheEnds) {
  GgufWriter w = tiny_llama_gguf(GgmlType::kF16);
  w.key_u32("tokenizer.ggml.eot_token_id", 5);
  const auto c = std::move(open(w)).value();
  EXPECT_EQ(c->config().find("eos_token_id")->dump(), "[7,5]");
}

TEST_F(GgufModel, RecoversLlama3RopeFromItsFactors) {
  std::vector<float> factors;  // as llama.cpp's converter computes them, for factor 32
  for (int i = 0; i < 8; ++i) {
    const double wave = 2 * std::numbers::pi * std::pow(10000.0, i / 8.0);
    const double smooth = (8192 / wave - 1) / 3;
    factors.push_back(static_cast<float>(
        wave < 2048 ? 1 : (wave > 8192 ? 32 : 1 / ((1 - smooth) / 32 + smooth))));
  }
  // At theta 10000 and 16 elements the last wave is 20000 long: all three cases occur.
  GgufWriter w = tiny_llama_gguf(GgmlType::kF16);
  w.tensor("rope_freqs.weight", GgmlType::kF32, {8}, f32_bytes(factors));
  const auto opened = open(w);
  ASSERT_TRUE(opened.is_ok()) << opened.status().message();
  EXPECT_EQ((*opened)->find("rope_freqs.weight"), nullptr);
  const auto reader = ConfigReader::create((*opened)->config(), "m.gguf");
  const auto rope = read_rope(reader->text().value());
  ASSERT_TRUE(rope.is_ok()) << rope.status().message();
  EXPECT_EQ(rope->type, RopeType::kLlama3);
  EXPECT_NEAR(rope->factor, 32, 1e-3);
  EXPECT_EQ(rope->original_max_position_embeddings, 8192);

  factors[3] *= 1.1F;
  GgufWriter other = tiny_llama_gguf(GgmlType::kF16);
  other.tensor("rope_freqs.weight", GgmlType::kF32, {8}, f32_bytes(factors));
  EXPECT_EQ(error(other).code(), StatusCode::kUnsupported);
  EXPECT_THAT(error(other).message(), HasSubstr("rope_freqs.weight"));
}

TEST_F(GgufModel, ReadsRopeScalingKeys) {
  GgufWriter linear = tiny_llama_gguf(GgmlType::kF16);
  linear.key_string("llama.rope.scaling.type", "linear").key_f32("llama.rope.scaling.factor", 4);
  EXPECT_EQ((*open(linear))->config().find("rope_scaling")->dump(),
            R"({"rope_type":"linear","factor":4.0})");
  GgufWriter yarn = tiny_llama_gguf(GgmlType::kF16);
  yarn.key_string("llama.rope.scaling.type", "yarn").key_f32("llama.rope.scaling.factor", 4);
  EXPECT_THAT(error(yarn).message(), HasSubstr("original_context_length: is missing"));
  yarn.key_u32("llama.rope.scaling.original_context_length", 16);
  EXPECT_EQ((*open(yarn))->config().find("rope_scaling")->dump(),
            R"({"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":16})");
  yarn.key_f32("llama.rope.scaling.attn_factor", 2);
  EXPECT_EQ(error(yarn).code(), StatusCode::kUnsupported);
  GgufWriter longrope = tiny_llama_gguf(GgmlType::kF16);
  longrope.key_string("llama.rope.scaling.type", "longrope");
  EXPECT_EQ(error(longrope).code(), StatusCode::kUnsupported);
}

TEST_F(GgufModel, NamesWhatIsNotSupported) {
  EXPECT_THAT(error(GgufWriter()).message(), HasSubstr("general.architecture: is missing"));
  EXPECT_THAT(error(GgufWriter().key_string("general.architecture", "qwen2")).message(),
              HasSubstr("\"qwen2\" is not supported"));
  EXPECT_THAT(error(GgufWriter().key_string("general.architecture", "clip")).message(),
              HasSubstr("mmproj"));
  GgufWriter experts = tiny_llama_gguf(GgmlType::kF16);
  EXPECT_EQ(error(experts.key_u32("llama.expert_count", 8)).code(), StatusCode::kUnsupported);
  GgufWriter split = tiny_llama_gguf(GgmlType::kF16);
  EXPECT_EQ(error(split.key_u32("split.count", 3)).code(), StatusCode::kUnsupported);
  GgufWriter partial = tiny_llama_gguf(GgmlType::kF16);
  EXPECT_EQ(error(partial.key_u32("llama.rope.dimension_count", 8)).code(),
            StatusCode::kUnsupported);
  EXPECT_THAT(error(GgufWriter().key_string("general.architecture", "llama")).message(),
              HasSubstr("llama.embedding_length: is missing"));
  EXPECT_EQ(open(tiny_llama_gguf(GgmlType::kQ8_0), {.gguf_quants = DType::kI8}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST_F(GgufModel, RefusesHeadsThatDoNotFit) {
  GgufWriter w = tiny_llama_gguf(GgmlType::kF16);
  w.tensor("blk.2.attn_q.weight", GgmlType::kF16, {32, 6}, std::string(384, '\1'));
  EXPECT_THAT(error(w).message(), HasSubstr("6 rows do not divide into 2 heads"));
}

}  // namespace
}  // namespace triptych
