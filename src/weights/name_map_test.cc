#include "weights/name_map.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace triptych {
namespace {

struct Spellings {
  const char* canonical;
  std::vector<const char*> originals;
};

// As written by transformers before 4.52 (the released LLaVA-1.5 checkpoints), from 4.52 on, and
// from 5.6 on (no vision_model level), and by text-only models with and without their head.
const std::vector<Spellings>& spellings() {
  static const std::vector<Spellings> all = {
      {"text.embed_tokens.weight",
       {"language_model.model.embed_tokens.weight", "model.language_model.embed_tokens.weight",
        "language_model.embed_tokens.weight", "model.embed_tokens.weight", "embed_tokens.weight"}},
      {"text.layers.11.self_attn.q_proj.weight",
       {"language_model.model.layers.11.self_attn.q_proj.weight",
        "model.language_model.layers.11.self_attn.q_proj.weight",
        "language_model.layers.11.self_attn.q_proj.weight",
        "model.layers.11.self_attn.q_proj.weight", "layers.11.self_attn.q_proj.weight"}},
      {"text.layers.0.self_attn.k_proj.bias", {"model.layers.0.self_attn.k_proj.bias"}},
      {"text.layers.0.mlp.gate_proj.weight",
       {"language_model.model.layers.0.mlp.gate_proj.weight",
        "model.language_model.layers.0.mlp.gate_proj.weight"}},
      {"text.norm.weight",
       {"language_model.model.norm.weight", "model.language_model.norm.weight", "model.norm.weight",
        "norm.weight"}},
      {"lm_head.weight",
       {"language_model.lm_head.weight", "lm_head.weight", "model.language_model.lm_head.weight"}},
      {"vision.embeddings.class_embedding",
       {"vision_tower.vision_model.embeddings.class_embedding",
        "model.vision_tower.vision_model.embeddings.class_embedding",
        "model.vision_tower.embeddings.class_embedding",
        "vision_tower.embeddings.class_embedding"}},
      {"vision.embeddings.patch_embedding.weight",
       {"vision_tower.vision_model.embeddings.patch_embedding.weight",
        "model.vision_tower.vision_model.embeddings.patch_embedding.weight",
        "model.vision_tower.embeddings.patch_embedding.weight"}},
      {"vision.embeddings.position_embedding.weight",
       {"vision_tower.vision_model.embeddings.position_embedding.weight",
        "model.vision_tower.embeddings.position_embedding.weight"}},
      {"vision.embeddings.position_ids", {"vision_tower.vision_model.embeddings.position_ids"}},
      {"vision.pre_layrnorm.bias",
       {"vision_tower.vision_model.pre_layrnorm.bias", "model.vision_tower.pre_layrnorm.bias"}},
      {"vision.encoder.layers.23.self_attn.out_proj.bias",
       {"vision_tower.vision_model.encoder.layers.23.self_attn.out_proj.bias",
        "model.vision_tower.encoder.layers.23.self_attn.out_proj.bias"}},
      {"vision.encoder.layers.3.mlp.fc1.weight",
       {"model.vision_tower.vision_model.encoder.layers.3.mlp.fc1.weight"}},
      {"vision.post_layernorm.weight", {"vision_tower.vision_model.post_layernorm.weight"}},
      {"vision.head.attention.in_proj_weight",
       {"vision_tower.vision_model.head.attention.in_proj_weight",
        "model.vision_tower.head.attention.in_proj_weight"}},
      {"proj.linear_1.weight",
       {"multi_modal_projector.linear_1.weight", "model.multi_modal_projector.linear_1.weight"}},
      {"proj.linear_2.bias",
       {"multi_modal_projector.linear_2.bias", "model.multi_modal_projector.linear_2.bias"}},
  };
  return all;
}

TEST(NameMap, TakesEverySpellingToOneName) {
  for (const Spellings& s : spellings()) {
    for (const char* original : s.originals) EXPECT_EQ(canonical_name(original), s.canonical);
  }
}

TEST(NameMap, KeepsWhatItDoesNotKnow) {
  for (const char* name :
       {"model.mm_projector.0.weight", "transformer.h.0.attn.c_attn.weight", "visual.blocks.0.x",
        "model.layersx.0", "lm_headx.weight", "", "model.", "score.weight"}) {
    EXPECT_EQ(canonical_name(name), name);
  }
}

TEST(NameMap, ReplacesOnlyThePrefix) {
  EXPECT_EQ(canonical_name("lm_head.model.layers.0"), "lm_head.model.layers.0");
  EXPECT_EQ(canonical_name("vision_tower.language_model.model.x"), "vision.language_model.model.x");
}

}  // namespace
}  // namespace triptych
