// Content negotiation of /metrics (RFC 9110, 12.5.1), as far as scrapers need it.
#include <algorithm>
#include <cstdlib>

#include "server/server_metrics.h"

namespace triptych {
namespace {

/// Up to `end`, without blanks around it; `text` goes on behind.
std::string_view next_part(std::string_view& text, char end) {
  const size_t n = std::min(text.find(end), text.size());
  std::string_view out = text.substr(0, n);
  text.remove_prefix(std::min(n + 1, text.size()));
  const size_t first = std::min(out.find_first_not_of(" \t"), out.size());
  out.remove_prefix(first);
  out = out.substr(0, out.find_last_not_of(" \t") + 1);
  return out;
}

/// What a client accepts: a kind of text, which version of it, and how gladly, 0 to 1.
struct Accepted {
  std::string_view type;
  std::string_view version;  ///< empty: any
  double quality = 1;
};

Accepted accepted_of(std::string_view range) {
  Accepted out{.type = next_part(range, ';'), .version = {}};
  while (!range.empty()) {
    std::string_view value = next_part(range, ';');
    const std::string_view name = next_part(value, '=');
    if (http::equal_ignoring_case(name, "version")) out.version = value;
    if (http::equal_ignoring_case(name, "q")) {
      out.quality = std::strtod(std::string(value).c_str(), nullptr);
    }
  }
  return out;
}

}  // namespace

MetricsFormat metrics_format_for(const std::string* accept) {
  std::string_view rest = accept == nullptr ? std::string_view() : std::string_view(*accept);
  double open = 0;
  double plain = 0;
  while (!rest.empty()) {
    const Accepted range = accepted_of(next_part(rest, ','));
    if (http::equal_ignoring_case(range.type, "application/openmetrics-text")) {
      if (range.version.empty() || range.version == "1.0.0") open = std::max(open, range.quality);
    } else if (http::equal_ignoring_case(range.type, "text/plain")) {
      plain = std::max(plain, range.quality);
    }
  }
  return open > 0 && open >= plain ? MetricsFormat::kOpenMetrics : MetricsFormat::kPrometheus;
}

std::string_view metrics_content_type(MetricsFormat format) {
  return format == MetricsFormat::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

}  // namespace triptych
