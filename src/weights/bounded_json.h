#pragma once

#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace triptych {

/// Parses JSON of a checkpoint file after a look at how many values it can hold: a parsed value
/// takes a hundred bytes where its text takes two, so that a file within its size limit could
/// still ask for fifty times its size. kOutOfRange when there may be more than `max_values`.
Result<Json> parse_bounded_json(std::string_view text, uint64_t max_values);

}  // namespace triptych
