#pragma once

#include <cstddef>
#include <vector>

#include "base/status.h"
#include "weights/checkpoint.h"

namespace triptych {

/// Sorts by canonical name; gives for each place the index that its tensor had before.
/// kInvalidArgument naming both when two tensors have one canonical name.
Result<std::vector<size_t>> sort_by_name(std::vector<TensorInfo>& tensors);

}  // namespace triptych
