#pragma once

#include "models/spec.h"
#include "ops/op_context.h"
#include "weights/config_reader.h"

namespace triptych {

/// Inverse frequencies and factor of a config's rotary embedding, as transformers'
/// modeling_rope_utils computes them (default, linear, llama3, yarn; Peng et al., "YaRN", 2023).
/// Dynamic NTK equals default up to max_position_embeddings, and no context here is longer.
Result<RopeSpec> make_rope_spec(const RopeConfig& config, int64_t head_dim,
                                const std::string& source);

/// Cosines and sines of a step's rows.
struct RopeTable {
  View cos;  ///< [T, rotary_dim / 2]
  View sin;
};

/// Fills a table in the step's scratch memory.
Result<RopeTable> make_rope_table(const OpContext& ctx, const RopeSpec& spec,
                                  const int32_t* positions, int64_t n_rows);

}  // namespace triptych
