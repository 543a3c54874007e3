#include "server/openai/data_uri.h"

#include <algorithm>
#include <cctype>

#include "text/base64.h"

namespace triptych::openai {
namespace {

constexpr std::string_view kScheme = "data:";

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

bool is_data_uri(std::string_view url) { return lower(url.substr(0, kScheme.size())) == kScheme; }

Result<DataUri> parse_data_uri(std::string_view url) {
  if (!is_data_uri(url)) return invalid_argument("this is no data URI");
  const size_t comma = url.find(',');
  if (comma == std::string_view::npos) {
    return invalid_argument("the data URI has no comma before its data");
  }
  const std::string head = lower(url.substr(kScheme.size(), comma - kScheme.size()));
  const size_t last = head.rfind(';');
  if (last == std::string::npos || head.substr(last + 1) != "base64") {
    return invalid_argument("the data URI must hold base64, as in data:image/png;base64,...");
  }
  DataUri out;
  out.media_type = head.substr(0, head.find(';'));
  TRIPTYCH_ASSIGN_OR_RETURN(out.bytes, base64_decode(url.substr(comma + 1)));
  return out;
}

}  // namespace triptych::openai
