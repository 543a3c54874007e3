#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "weights/gguf.h"

namespace triptych {

/// A Hugging Face LlamaConfig of the same meaning as the metadata of a GGUF file of architecture
/// `llama`. kUnsupported names an architecture, expert count, rope scaling or other property that
/// the llama decoder does not have; kInvalidArgument a missing or bad key. Keys: docs/gguf.md of
/// ggml; their meaning: transformers' GGUF_CONFIG_MAPPING["llama"] and llama.cpp's converter.
Result<Json> gguf_llama_config(const GgufFile& file);

/// Canonical name (name_map.h) of a GGUF llama tensor ("blk.3.attn_q.weight"); nothing for a name
/// that the architecture does not have.
std::optional<std::string> gguf_llama_name(std::string_view name);

/// The tensor that holds frequency factors of Llama 3's rope; part of the config, not a weight.
constexpr std::string_view kGgufRopeFactors = "rope_freqs.weight";

}  // namespace triptych
