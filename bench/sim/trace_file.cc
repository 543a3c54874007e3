#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "trace.h"

namespace triptych {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 24;

Result<ServiceClass> read_class(const JsonRef& at) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string name, at.as_string());
  for (const ServiceClass c :
       {ServiceClass::kInteractive, ServiceClass::kStandard, ServiceClass::kBatch}) {
    if (name == service_class_name(c)) return c;
  }
  return at.error("expected interactive, standard or batch");
}

Result<MediaState> read_media(const JsonRef& at) {
  MediaState media;
  TRIPTYCH_ASSIGN_OR_RETURN(media.position, at.at("position").as_int_in(0, kMostTokens));
  TRIPTYCH_ASSIGN_OR_RETURN(media.length, at.at("length").as_int_in(1, kMostTokens));
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t item, at.at("item").as_int_in(0, INT64_MAX));
  TRIPTYCH_ASSIGN_OR_RETURN(media.blocks_total, at.at("blocks").as_int_in(1, 4096));
  TRIPTYCH_ASSIGN_OR_RETURN(media.block_gflop, at.at("block_gflop").as_number());
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t bytes, at.at("bytes").as_int_in(0, INT64_MAX));
  media.item = static_cast<uint64_t>(item);
  media.bytes = static_cast<uint64_t>(bytes);
  media.blocks_left = media.blocks_total;
  return media;
}

Result<TraceRequest> read_request(const JsonRef& at) {
  TraceRequest r;
  TRIPTYCH_ASSIGN_OR_RETURN(r.arrival_ms, at.at("arrival_ms").as_number());
  TRIPTYCH_ASSIGN_OR_RETURN(r.service_class, read_class(at.at("class")));
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t tenant, at.get_int_in("tenant", 0, 0, UINT32_MAX));
  r.tenant = static_cast<uint32_t>(tenant);
  TRIPTYCH_ASSIGN_OR_RETURN(r.n_prompt, at.at("prompt_tokens").as_int_in(1, kMostTokens));
  TRIPTYCH_ASSIGN_OR_RETURN(r.max_new, at.at("max_new").as_int_in(1, kMostTokens));
  TRIPTYCH_ASSIGN_OR_RETURN(r.n_answer, at.at("answer_tokens").as_int_in(1, r.max_new));
  int64_t end = 0;
  const JsonRef media = at.at("media");
  for (size_t i = 0; i < media.size(); ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(const MediaState item, read_media(media.at(i)));
    if (item.position < end || item.end() > r.n_prompt) {
      return media.at(i).at("position").error("spans must follow each other within the prompt");
    }
    end = item.end();
    r.media.push_back(item);
  }
  return r;
}

}  // namespace

Result<std::vector<TraceRequest>> read_trace(const std::string& path) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  std::vector<TraceRequest> trace;
  size_t begin = 0;
  for (int line = 1; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view row(text.data() + begin, end - begin);
    begin = end + 1;
    if (row.empty()) continue;
    const std::string where = fmt::format("{}:{}", path, line);
    const Result<Json> json = parse_json(row);
    if (!json.is_ok()) return json.status().with_context(where);
    TRIPTYCH_ASSIGN_OR_RETURN(TraceRequest request, read_request(JsonRef(*json, where)));
    trace.push_back(std::move(request));
  }
  std::stable_sort(trace.begin(), trace.end(),
                   [](const auto& a, const auto& b) { return a.arrival_ms < b.arrival_ms; });
  return trace;
}

Status write_trace(const std::string& path, const std::vector<TraceRequest>& trace) {
  std::string text;
  for (const TraceRequest& r : trace) {
    std::string media;
    for (const MediaState& m : r.media) {
      media += fmt::format(
          R"({}{{"position": {}, "length": {}, "item": {}, "blocks": {}, "block_gflop": {}, "bytes": {}}})",
          media.empty() ? "" : ", ", m.position, m.length, m.item, m.blocks_total, m.block_gflop,
          m.bytes);
    }
    text += fmt::format(
        R"({{"arrival_ms": {:.3f}, "class": "{}", "tenant": {}, "prompt_tokens": {}, "max_new": {}, )"
        R"("answer_tokens": {}, "media": [{}]}})"
        "\n",
        r.arrival_ms, service_class_name(r.service_class), r.tenant, r.n_prompt, r.max_new,
        r.n_answer, media);
  }
  return write_file(path, text);
}

}  // namespace triptych
