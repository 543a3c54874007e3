#include "weights/bounded_json.h"

#include <fmt/format.h>

#include <algorithm>

namespace triptych {

Result<Json> parse_bounded_json(std::string_view text, uint64_t max_values) {
  // Every value but the first of a container follows a comma, every container opens once. Commas
  // and brackets inside of strings only make the bound looser.
  const auto values = static_cast<uint64_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return c == ',' || c == '[' || c == '{'; }));
  if (values > max_values) {
    return out_of_range(
        fmt::format("JSON of about {} values is over the limit of {}", values, max_values));
  }
  return parse_json(text);
}

}  // namespace triptych
