#pragma once

#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "observe/timeline.h"

namespace triptych {

/// Writes trace events to a file as they come, in the array form of Chrome's Trace Event Format,
/// which Perfetto opens (also when the program died before the end of the file). Keeps none of
/// them. Times are milliseconds of one clock. Thread-safe.
class TraceWriter {
 public:
  /// kInvalidArgument when the file cannot be written.
  static Result<std::unique_ptr<TraceWriter>> open(const std::string& path);
  /// Ends the file; logs an error when not all of it could be written.
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  using Track = int;  ///< a row of the viewer: one of our threads
  using Figure = std::pair<std::string_view, double>;

  Track add_track(std::string_view name);
  /// Work of a thread. Slices of a track come in the order of their starts and nest.
  void slice(Track track, std::string_view name, double start_ms, double end_ms,
             std::initializer_list<Figure> figures = {});
  void counter(std::string_view name, double now_ms, double value);
  /// An answer that has ended: an async span, with one for each stage inside it.
  void answer(uint64_t request, uint32_t choice, const Timeline& timeline, std::string_view finish);

 private:
  TraceWriter(std::string path, std::FILE* file);
  /// One event, without its braces.
  void write(const std::string& fields);

  const std::string path_;
  std::FILE* const file_;
  std::mutex mutex_;
  bool first_ = true;
  Track n_tracks_ = 0;
};

}  // namespace triptych
