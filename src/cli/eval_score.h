#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

namespace triptych::cli {

/// Share of the listed objects that are right, counted as multisets: what both lists name over the
/// longer list. Lists are split at commas and at row ends ("Row 1: a, b. Row 2: c.").
double item_score(std::string_view answer, std::string_view expected);

/// 95 % interval of a share of `right` in `n` (Wilson's score interval), in [0, 1].
std::pair<double, double> wilson_interval(int64_t right, int64_t n);

}  // namespace triptych::cli
