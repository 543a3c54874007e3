#include "server/http/http.h"

#include <algorithm>
#include <cctype>

namespace triptych::http {

const std::string* Request::header(std::string_view name) const {
  const auto same_letter = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  for (const Header& h : headers) {
    if (std::equal(h.name.begin(), h.name.end(), name.begin(), name.end(), same_letter)) {
      return &h.value;
    }
  }
  return nullptr;
}

}  // namespace triptych::http
