#pragma once

#include "models/spec.h"

namespace triptych {

/// Bytes of scratch that a step of a pre-norm decoder takes: angles, one normed copy of the rows,
/// then attention or the MLP, whichever is wider, and the rows that go to the head.
size_t decoder_workspace_bytes(const TextSpec& spec, int64_t n_rows, int64_t n_logit_rows);

}  // namespace triptych
