#include "observe/metrics_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace triptych::metrics_text {
namespace {

/// Bytes of the character that `text` begins with; 0 when that is no UTF-8 (RFC 3629).
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0};
  };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const size_t n = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const uint8_t second = byte(1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second >= 0xa0;
  const bool too_large = first == 0xf4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : n;
}

void append_escaped(std::string& out, std::string_view text, bool quotes) {
  while (!text.empty()) {
    const size_t n = character_bytes(text);
    const char c = text.front();
    if (n == 0) {
      out += '?';
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\\' || (c == '"' && quotes)) {
      out += '\\';
      out += c;
    } else {
      out += text.substr(0, n);
    }
    text.remove_prefix(n == 0 ? 1 : n);
  }
}

/// OpenMetrics wants a point in the edges of buckets, Prometheus takes it.
std::string edge_text(double edge) {
  std::string out = fmt::format("{}", edge);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

std::string head(std::string_view name, std::string_view suffix, const std::string& labels) {
  if (labels.empty()) return fmt::format("{}{} ", name, suffix);
  return fmt::format("{}{}{{{}}} ", name, suffix, labels);
}

void append_exemplar(std::string& out, const Histogram::Exemplar& exemplar) {
  out += " # {request_id=\"";
  append_escaped(out, exemplar.id, true);
  out += "\"} ";
  append(out, exemplar.value);
  out += ' ';
  out += fmt::format("{:.3f}", exemplar.seconds);
}

}  // namespace

std::string label_pairs(std::string_view names, const std::vector<std::string_view>& values) {
  std::string out;
  for (const std::string_view value : values) {
    const size_t end = std::min(names.find(','), names.size());
    if (!out.empty()) out += ',';
    out += names.substr(0, end);
    out += "=\"";
    append_escaped(out, value, true);
    out += '"';
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return out;
}

std::vector<std::string> line_heads(const MetricFamily& family, const std::string& labels) {
  if (family.kind != MetricKind::kHistogram) return {head(family.name, "", labels)};
  std::vector<std::string> out;
  const std::string before = labels.empty() ? "" : labels + ",";
  for (const double edge : family.edges) {
    out.push_back(
        head(family.name, "_bucket", fmt::format("{}le=\"{}\"", before, edge_text(edge))));
  }
  out.push_back(head(family.name, "_bucket", before + "le=\"+Inf\""));
  out.push_back(head(family.name, "_sum", labels));
  out.push_back(head(family.name, "_count", labels));
  return out;
}

void append_family(std::string& out, const MetricFamily& family, MetricsFormat format) {
  const bool open = format == MetricsFormat::kOpenMetrics;
  std::string_view name = family.name;
  constexpr std::string_view kTotal = "_total";  // of a counter's samples, in OpenMetrics
  if (open && family.kind == MetricKind::kCounter && name.ends_with(kTotal)) {
    name.remove_suffix(kTotal.size());
  }
  out += fmt::format("# HELP {} ", name);
  append_escaped(out, family.help, open);
  out += fmt::format("\n# TYPE {} {}\n", name, metric_kind_name(family.kind));
}

void append(std::string& out, uint64_t number) {
  char digits[24];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), number);
  out.append(digits, end.ptr);
}

void append(std::string& out, double number) {
  if (std::isnan(number)) {
    out += "NaN";
  } else if (std::isinf(number)) {
    out += number < 0 ? "-Inf" : "+Inf";
  } else {
    char digits[32];
    const auto end = std::to_chars(std::begin(digits), std::end(digits), number);
    out.append(digits, end.ptr);
  }
}

void append(std::string& out, const Histogram& histogram, const std::vector<std::string>& heads,
            MetricsFormat format) {
  std::vector<Histogram::Exemplar> exemplars;
  if (format == MetricsFormat::kOpenMetrics) exemplars = histogram.exemplars();
  const size_t n = histogram.n_buckets();
  uint64_t total = 0;  // read once, so that the last bucket and the count agree
  for (size_t i = 0; i < n; ++i) {
    total += histogram.count(i);
    out += heads[i];
    append(out, total);
    if (!exemplars.empty() && !exemplars[i].id.empty()) append_exemplar(out, exemplars[i]);
    out += '\n';
  }
  out += heads[n];
  append(out, histogram.sum());
  out += '\n';
  out += heads[n + 1];
  append(out, total);
  out += '\n';
}

}  // namespace triptych::metrics_text
