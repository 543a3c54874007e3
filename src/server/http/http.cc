#include "server/http/http.h"

#include <algorithm>
#include <cctype>

namespace triptych::http {

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

const std::string* Request::header(std::string_view name) const {
  for (const Header& h : headers) {
    if (equal_ignoring_case(h.name, name)) return &h.value;
  }
  return nullptr;
}

}  // namespace triptych::http
