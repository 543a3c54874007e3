#pragma once

#include "ops/linear.h"

namespace triptych {

/// out[i] = row ids[i] of the packed table, as f32. The table may be the tied output head.
struct EmbeddingArgs {
  PackedWeight table;  ///< [vocab, D]
  const int32_t* ids;
  int64_t n;
  float* out;  ///< [n, D], row stride ldo
  int64_t ldo;
};

/// ids: n token ids, each in [0, vocab) (kInvalidArgument naming id and position otherwise);
/// out [n, D] f32.
Status embedding(const OpContext& ctx, const PackedWeight& table, const int32_t* ids,
                 const View& out);

}  // namespace triptych
