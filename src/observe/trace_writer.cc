#include "observe/trace_writer.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/log.h"

namespace triptych {
namespace {

std::string quoted(std::string_view text) { return Json::string(std::string(text)).dump(); }

/// Trace times are microseconds.
std::string at(double ms) { return fmt::format("\"ts\":{:.3f}", ms * 1e3); }

std::string_view separator(bool first) { return first ? "" : ","; }

}  // namespace

Result<std::unique_ptr<TraceWriter>> TraceWriter::open(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return invalid_argument(path + ": cannot be written");
  return std::unique_ptr<TraceWriter>(new TraceWriter(path, file));
}

TraceWriter::TraceWriter(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {
  std::fputs("[\n", file_);
  write(R"("ph":"M","name":"process_name","pid":1,"args":{"name":"triptych"})");
}

TraceWriter::~TraceWriter() {
  std::fputs("\n]\n", file_);
  const bool failed = std::ferror(file_) != 0;
  if (std::fclose(file_) != 0 || failed)
    log_error(path_ + ": the trace is not whole; is the disk full?");
}

void TraceWriter::write(const std::string& fields) {
  const std::lock_guard lock(mutex_);
  fmt::print(file_, "{}{{{}}}", first_ ? "" : ",\n", fields);
  first_ = false;
}

TraceWriter::Track TraceWriter::add_track(std::string_view name) {
  Track track = 0;
  {
    const std::lock_guard lock(mutex_);
    track = ++n_tracks_;
  }
  write(fmt::format(R"("ph":"M","name":"thread_name","pid":1,"tid":{},"args":{{"name":{}}})", track,
                    quoted(name)));
  return track;
}

void TraceWriter::slice(Track track, std::string_view name, double start_ms, double end_ms,
                        std::initializer_list<Figure> figures) {
  std::string args;
  for (const auto& [figure, value] : figures) {
    args += fmt::format("{}{}:{}", separator(args.empty()), quoted(figure), value);
  }
  write(fmt::format(R"("ph":"X","name":{},"pid":1,"tid":{},{},"dur":{:.3f},"args":{{{}}})",
                    quoted(name), track, at(start_ms), (end_ms - start_ms) * 1e3, args));
}

void TraceWriter::counter(std::string_view name, double now_ms, double value) {
  write(fmt::format(R"("ph":"C","name":{},"pid":1,{},"args":{{"value":{}}})", quoted(name),
                    at(now_ms), value));
}

void TraceWriter::answer(uint64_t request, uint32_t choice, const Timeline& timeline,
                         std::string_view finish) {
  const std::string id = quoted(fmt::format("{}.{}", request, choice));
  const auto event = [&](char phase, std::string_view name, double ms, std::string_view args) {
    write(fmt::format(R"("ph":"{}","cat":"request","id":{},"name":{},"pid":1,"tid":0,{}{})", phase,
                      id, quoted(name), at(ms), args));
  };
  const std::string name = fmt::format("request {}", request);
  const StageClock& clock = timeline.clock;
  event(
      'b', name, clock.start_ms(),
      fmt::format(
          R"(,"args":{{"choice":{},"finish":{},"media_tokens":{},"media_tokens_kept":{},)"
          R"("media_bytes":{},"cache":{},"cached_tokens":{},"media_in_prefix":{},"media_in_encoder":{}}})",
          choice, quoted(finish), timeline.media_tokens, timeline.media_tokens_kept,
          timeline.media_bytes, quoted(cache_tier_name(timeline.cache_tier())),
          timeline.cached_tokens, timeline.media_in_prefix, timeline.media_in_encoder));
  for (const StageClock::Span& span : clock.spans()) {
    event('b', stage_name(span.stage), span.start_ms, "");
    event('e', stage_name(span.stage), span.end_ms, "");
  }
  event('e', name, clock.spans().back().end_ms, "");
}

}  // namespace triptych
