#include "weights/gguf_llama.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "weights/gguf_rope.h"

namespace triptych {
namespace {

constexpr int64_t kMaxCount = int64_t{1} << 31;

/// Reads sizes and counts.
class Keys {
 public:
  explicit Keys(const GgufFile& file) : file_(file) {}

  Result<int64_t> required(std::string_view key, int64_t low, int64_t high) const {
    TRIPTYCH_ASSIGN_OR_RETURN(const auto v, file_.find_int(key, low, high));
    if (!v) return file_.error(key, "is missing");
    return *v;
  }
  Result<int64_t> optional(std::string_view key, int64_t fallback) const {
    TRIPTYCH_ASSIGN_OR_RETURN(const auto v, file_.find_int(key, 1, kMaxCount));
    return v.value_or(fallback);
  }

 private:
  const GgufFile& file_;
};

Status check_supported(const GgufFile& file) {
  TRIPTYCH_ASSIGN_OR_RETURN(const auto architecture, file.find_string("general.architecture"));
  if (!architecture) return file.error("general.architecture", "is missing");
  if (*architecture == "clip") {
    return unsupported(file.path() +
                       ": is a projector file (mmproj), not a model: use the "
                       "Hugging Face folder for models with pictures");
  }
  if (*architecture != "llama") {
    return unsupported(
        fmt::format("{}: general.architecture \"{}\" is not supported; from GGUF we "
                    "read \"llama\"",
                    file.path(), architecture->substr(0, 100)));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const auto parts, file.find_int("split.count", 0, 65535));
  if (parts.value_or(1) > 1) {
    return unsupported(file.path() + ": split.count: is one of several files: merge them first");
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const auto experts, file.find_int("llama.expert_count", 0, 65535));
  if (experts.value_or(0) > 0) {
    return unsupported(
        fmt::format("{}: llama.expert_count: {} experts; mixtures of experts are "
                    "not supported",
                    file.path(), *experts));
  }
  return Status::ok();
}

/// Sizes of the attention heads: one for q, k and v, rotated whole, as LlamaConfig can say.
Status set_heads(const GgufFile& file, int64_t hidden, Json& config) {
  const Keys keys(file);
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t heads,
                            keys.required("llama.attention.head_count", 1, 1 << 16));
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t kv_heads,
                            keys.optional("llama.attention.head_count_kv", heads));
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t head_dim,
                            keys.optional("llama.attention.key_length", hidden / heads));
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t value_dim,
                            keys.optional("llama.attention.value_length", head_dim));
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t rotated,
                            keys.optional("llama.rope.dimension_count", head_dim));
  if (heads % kv_heads != 0) {
    return file.error("llama.attention.head_count_kv",
                      fmt::format("{} does not divide head_count {}", kv_heads, heads));
  }
  if (value_dim != head_dim || rotated != head_dim || head_dim % 2 != 0 || head_dim == 0) {
    return unsupported(
        fmt::format("{}: key_length {}, value_length {} and rope.dimension_count {} "
                    "differ or are odd; llama heads have one even size",
                    file.path(), head_dim, value_dim, rotated));
  }
  config.set("num_attention_heads", Json::integer(heads));
  config.set("num_key_value_heads", Json::integer(kv_heads));
  config.set("head_dim", Json::integer(head_dim));
  return Status::ok();
}

Status set_vocabulary(const GgufFile& file, Json& config) {
  TRIPTYCH_ASSIGN_OR_RETURN(const auto vocab, file.find_int("llama.vocab_size", 1, kMaxCount));
  const GgufTensor* embedding = file.find_tensor("token_embd.weight");
  if (!vocab && embedding == nullptr) return file.error("llama.vocab_size", "is missing");
  config.set("vocab_size", Json::integer(vocab ? *vocab : embedding->shape[0]));

  const auto id = [&](std::string_view key) { return file.find_int(key, 0, kMaxCount * 2); };
  TRIPTYCH_ASSIGN_OR_RETURN(const auto bos, id("tokenizer.ggml.bos_token_id"));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto eos, id("tokenizer.ggml.eos_token_id"));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto eot, id("tokenizer.ggml.eot_token_id"));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto pad, id("tokenizer.ggml.padding_token_id"));
  config.set("bos_token_id", bos ? Json::integer(*bos) : Json());
  config.set("pad_token_id", pad ? Json::integer(*pad) : Json());
  // A chat model's answer ends with either token; llama.cpp stops at both.
  std::vector<Json> ends;
  if (eos) ends.push_back(Json::integer(*eos));
  if (eot && eot != eos) ends.push_back(Json::integer(*eot));
  config.set("eos_token_id", ends.empty() ? Json() : Json::array(std::move(ends)));
  return Status::ok();
}

struct NameRule {
  std::string_view from;
  std::string_view to;
};
constexpr std::array kGlobalNames = {
    NameRule{"token_embd", "text.embed_tokens"},
    NameRule{"output_norm", "text.norm"},
    NameRule{"output", "lm_head"},
};
constexpr std::array kLayerNames = {
    NameRule{"attn_norm", "input_layernorm"},    NameRule{"attn_q", "self_attn.q_proj"},
    NameRule{"attn_k", "self_attn.k_proj"},      NameRule{"attn_v", "self_attn.v_proj"},
    NameRule{"attn_output", "self_attn.o_proj"}, NameRule{"ffn_norm", "post_attention_layernorm"},
    NameRule{"ffn_gate", "mlp.gate_proj"},       NameRule{"ffn_up", "mlp.up_proj"},
    NameRule{"ffn_down", "mlp.down_proj"},
};

template <typename Rules>
std::optional<std::string_view> look_up(const Rules& rules, std::string_view name) {
  for (const NameRule& rule : rules) {
    if (rule.from == name) return rule.to;
  }
  return std::nullopt;
}

}  // namespace

Result<Json> gguf_llama_config(const GgufFile& file) {
  TRIPTYCH_RETURN_IF_ERROR(check_supported(file));
  const Keys keys(file);
  Json config = Json::object();
  config.set("architectures", Json::array({Json::string("LlamaForCausalLM")}));
  config.set("model_type", Json::string("llama"));
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t hidden,
                            keys.required("llama.embedding_length", 1, 1 << 20));
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t layers, keys.required("llama.block_count", 1, 1 << 16));
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t inner,
                            keys.required("llama.feed_forward_length", 1, 1 << 24));
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t context,
                            keys.required("llama.context_length", 1, kMaxCount));
  config.set("hidden_size", Json::integer(hidden));
  config.set("num_hidden_layers", Json::integer(layers));
  config.set("intermediate_size", Json::integer(inner));
  config.set("max_position_embeddings", Json::integer(context));
  config.set("hidden_act", Json::string("silu"));
  constexpr std::string_view kEps = "llama.attention.layer_norm_rms_epsilon";
  TRIPTYCH_ASSIGN_OR_RETURN(const auto eps, file.find_number(kEps));
  if (!eps) return file.error(kEps, "is missing");
  config.set("rms_norm_eps", Json::number(*eps));
  TRIPTYCH_RETURN_IF_ERROR(set_heads(file, hidden, config));
  TRIPTYCH_RETURN_IF_ERROR(set_vocabulary(file, config));
  TRIPTYCH_RETURN_IF_ERROR(set_gguf_rope(file, config));
  const auto present = [&](std::string_view name) {
    return Json::boolean(file.find_tensor(name) != nullptr);
  };
  config.set("attention_bias", present("blk.0.attn_q.bias"));
  config.set("mlp_bias", present("blk.0.ffn_gate.bias"));
  config.set("tie_word_embeddings", Json::boolean(file.find_tensor("output.weight") == nullptr));
  return config;
}

std::optional<std::string> gguf_llama_name(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view suffix = name.substr(dot);  // ".weight" or ".bias"
  if (suffix != ".weight" && suffix != ".bias") return std::nullopt;
  std::string_view stem = name.substr(0, dot);
  if (const auto to = look_up(kGlobalNames, stem)) return std::string(*to).append(suffix);

  constexpr std::string_view kLayer = "blk.";
  if (!stem.starts_with(kLayer)) return std::nullopt;
  stem.remove_prefix(kLayer.size());
  const size_t digits = stem.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos || stem[digits] != '.') return std::nullopt;
  const auto to = look_up(kLayerNames, stem.substr(digits + 1));
  if (!to) return std::nullopt;
  return fmt::format("text.layers.{}.{}{}", stem.substr(0, digits), *to, suffix);
}

}  // namespace triptych
