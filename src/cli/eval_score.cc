#include "cli/eval_score.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace triptych::cli {
namespace {

/// Counts of the items of a list, without surrounding blanks and periods.
std::map<std::string, int64_t> items_of(std::string_view list) {
  std::string text(list);
  // "... a blue ring. Row 2: ..." ends one item and starts the next.
  for (size_t at = text.find(". Row"); at != std::string::npos; at = text.find(". Row", at)) {
    text.replace(at, 5, ", Row");
  }
  std::map<std::string, int64_t> out;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string item = text.substr(begin, end - begin);
    item.erase(0, std::min(item.find_first_not_of(". "), item.size()));
    item.erase(item.find_last_not_of(". ") + 1);
    ++out[item];
    begin = end + 1;
  }
  return out;
}

int64_t total(const std::map<std::string, int64_t>& counts) {
  int64_t n = 0;
  for (const auto& [item, count] : counts) n += count;
  return n;
}

}  // namespace

double item_score(std::string_view answer, std::string_view expected) {
  const auto a = items_of(answer);
  const auto b = items_of(expected);
  int64_t both = 0;
  for (const auto& [item, count] : a) {
    const auto found = b.find(item);
    if (found != b.end()) both += std::min(count, found->second);
  }
  return static_cast<double>(both) / static_cast<double>(std::max(total(a), total(b)));
}

std::pair<double, double> wilson_interval(int64_t right, int64_t n) {
  if (n == 0) return {0, 1};
  constexpr double kZ = 1.959963984540054;
  const auto count = static_cast<double>(n);
  const double p = static_cast<double>(right) / count;
  const double z2 = kZ * kZ / count;
  const double centre = (p + z2 / 2) / (1 + z2);
  const double half = kZ * std::sqrt(p * (1 - p) / count + z2 / (4 * count)) / (1 + z2);
  return {std::max(0.0, centre - half), std::min(1.0, centre + half)};
}

}  // namespace triptych::cli
