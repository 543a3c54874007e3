#include "server/remote/media_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "server/remote/http_get.h"

namespace triptych {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kFile = "file://";

/// The path that a file:// name stands for: no host, no escapes.
Result<std::string> path_of(std::string_view name) {
  name.remove_prefix(kFile.size());
  if (!name.starts_with('/')) return invalid_argument("a file is named as file:///folder/name");
  if (name.find_first_of(std::string_view("%?#\0", 4)) != std::string_view::npos) {
    return invalid_argument("the name of a file holds '%', '?', '#' or a zero");
  }
  return std::string(name);
}

bool is_below(const fs::path& path, const fs::path& folder) {
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end() && rest != path.end();
}

}  // namespace

Result<std::unique_ptr<MediaSource>> MediaSource::make(MediaSources sources, Allow allow) {
  for (std::string& folder : sources.folders) {
    std::error_code error;
    const fs::path real = fs::canonical(folder, error);
    if (error || !fs::is_directory(real)) {
      return invalid_argument(fmt::format("{}: no folder to read media from", folder));
    }
    folder = real.string();
  }
  return std::unique_ptr<MediaSource>(new MediaSource(std::move(sources), allow));
}

MediaSource::MediaSource(MediaSources sources, Allow allow)
    : sources_(std::move(sources)), allow_(allow) {
  for (int i = 0; i < std::max(1, sources_.threads); ++i) {
    threads_.emplace_back([this] { work(); });
  }
}

MediaSource::~MediaSource() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Status MediaSource::check(const std::string& name) const {
  if (name.starts_with(kFile)) {
    TRIPTYCH_RETURN_IF_ERROR(path_of(name).status());
    if (!sources_.folders.empty()) return Status::ok();
    return {StatusCode::kPermissionDenied, "this server reads no files of its own"};
  }
  if (sources_.hosts.empty()) {
    return {StatusCode::kPermissionDenied, "this server fetches nothing from other hosts"};
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const RemoteUrl url, parse_remote_url(name));
  const bool listed =
      std::any_of(sources_.hosts.begin(), sources_.hosts.end(),
                  [&](const std::string& pattern) { return is_listed_host(url.host, pattern); });
  if (listed) return Status::ok();
  return {StatusCode::kPermissionDenied,
          fmt::format("{} is not among the hosts that this server fetches from", url.host)};
}

Status MediaSource::fetch(std::vector<std::string> names, std::vector<std::string> labels,
                          Done done) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= sources_.max_waiting) {
      return resource_exhausted(fmt::format(
          "{} requests wait for media to be fetched, the limit; try again later", waiting_.size()));
    }
    waiting_.push_back({std::move(names), std::move(labels), std::move(done)});
  }
  changed_.notify_one();
  return Status::ok();
}

void MediaSource::work() {
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Job job = std::move(waiting_.front());
    waiting_.pop_front();
    const bool stopping = stopping_;
    lock.unlock();
    if (stopping) {
      job.done(Status(StatusCode::kUnavailable, "the server is ending"));
      continue;
    }
    job.done(fetch_all(job));
  }
}

Result<std::vector<std::string>> MediaSource::fetch_all(const Job& job) const {
  std::vector<std::string> out;
  uint64_t left = sources_.max_bytes;
  for (size_t i = 0; i < job.names.size(); ++i) {
    Result<std::string> bytes = fetch_one(job.names[i], left);
    if (!bytes.is_ok()) return bytes.status().with_context(job.labels[i]);
    left -= bytes->size();
    out.push_back(std::move(*bytes));
  }
  return out;
}

Result<std::string> MediaSource::fetch_one(const std::string& name, uint64_t max_bytes) const {
  TRIPTYCH_RETURN_IF_ERROR(check(name));
  if (name.starts_with(kFile)) return read_local(name, max_bytes);
  TRIPTYCH_ASSIGN_OR_RETURN(const RemoteUrl url, parse_remote_url(name));
  return http_get(url, {.max_bytes = max_bytes, .time = sources_.fetch_time, .allow = allow_});
}

/// Links are followed first: what counts is where the file lies. One word for all that fails, or
/// the answer would tell what there is outside the folders.
Result<std::string> MediaSource::read_local(const std::string& name, uint64_t max_bytes) const {
  const Status refused(StatusCode::kPermissionDenied,
                       "there is no such file in the folders that this server reads from");
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string path, path_of(name));
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return refused;
  const bool below = std::any_of(sources_.folders.begin(), sources_.folders.end(),
                                 [&](const std::string& folder) { return is_below(real, folder); });
  if (!below || !fs::is_regular_file(real, error)) return refused;
  Result<std::string> bytes = read_file(real.string(), max_bytes);
  if (bytes.is_ok()) return bytes;
  if (bytes.status().code() != StatusCode::kOutOfRange) return refused;
  return out_of_range(fmt::format("the file is longer than {} bytes", max_bytes));
}

}  // namespace triptych
