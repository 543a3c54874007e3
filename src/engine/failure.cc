// A step that failed as a whole: what stood there goes to a file, and the engine takes no more.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/engine.h"

namespace triptych {
namespace {

// The layout of the file, for those who read it by program.
constexpr int64_t kSnapshotVersion = 1;

template <typename T>
Json integers(const std::vector<T>& values) {
  Json out = Json::array();
  for (const T value : values) out.append(Json::integer(static_cast<int64_t>(value)));
  return out;
}

Json integer(uint64_t value) { return Json::integer(static_cast<int64_t>(value)); }

std::string hex(const MediaId& id) {
  std::string out;
  for (const uint8_t byte : id) out += fmt::format("{:02x}", byte);
  return out;
}

Json json_of(const Sequence& s) {
  Json media = Json::array();
  for (const Span& span : s.request->spans) {
    const MediaUse& use = s.media[span.media];
    media.append(Json::object({{"position", Json::integer(span.position)},
                               {"rows", Json::integer(span.length)},
                               {"feature", Json::string(hex(use.feature))},
                               {"encoded", Json::boolean(use.features != nullptr)}}));
  }
  return Json::object(
      {{"id", integer(s.id)},
       {"request", integer(s.group)},
       {"choice", Json::integer(s.choice)},
       {"state", Json::string(s.running ? "running" : "waiting")},
       {"cancelled", Json::boolean(s.cancelled)},
       {"class", Json::string(std::string(service_class_name(s.options.service_class)))},
       {"tenant", Json::integer(s.options.tenant)},
       {"arrival_ms", Json::number(s.arrival_ms())},
       {"deadline_ms", Json::number(s.options.deadline_ms)},
       {"prompt_tokens", Json::integer(s.n_prompt())},
       {"tokens", Json::integer(s.n_tokens())},
       {"cached_tokens", Json::integer(s.n_cached())},
       {"max_new", Json::integer(s.max_new)},
       {"preemptions", Json::integer(s.usage.preemptions)},
       {"pages", integers(s.kv.pages())},
       {"media", std::move(media)}});
}

Json json_of(const PagePool& pool) {
  std::vector<bool> is_free(static_cast<size_t>(pool.n_pages()));
  for (const int32_t page : pool.free_pages()) is_free[static_cast<size_t>(page)] = true;
  Json held = Json::array();
  for (int32_t page = 0; page < pool.n_pages(); ++page) {
    if (is_free[static_cast<size_t>(page)]) continue;
    held.append(Json::object(
        {{"page", Json::integer(page)},
         {"references", Json::integer(pool.references(page))},
         {"published", Json::boolean(pool.published(page))},
         {"modality", Json::string(std::string(modality_name(pool.type(page).modality)))}}));
  }
  return Json::object({{"total", Json::integer(pool.n_pages())},
                       {"free", Json::integer(pool.n_free())},
                       {"evictable", Json::integer(pool.n_reclaimable())},
                       {"held", std::move(held)}});
}

Json json_of(const PrefixIndex& prefix, const EncoderCache& encoder) {
  const PrefixIndexStats& stats = prefix.stats();
  return Json::object(
      {{"prefix", Json::object({{"pages", integer(prefix.entries().size())},
                                {"lookups", Json::integer(stats.lookups)},
                                {"published", Json::integer(stats.published)},
                                {"evicted", Json::integer(stats.evicted)},
                                {"broken_links", Json::integer(stats.broken_links)}})},
       {"encoder", Json::object({{"items", Json::integer(encoder.n_entries())},
                                 {"in_flight", Json::integer(encoder.n_in_flight())},
                                 {"budget_bytes", integer(encoder.budget_bytes())},
                                 {"stored_bytes", integer(encoder.stored_bytes())},
                                 {"reserved_bytes", integer(encoder.reserved_bytes())},
                                 {"in_use_bytes", integer(encoder.in_use_bytes())}})}});
}

Json json_of(const StepPlan& plan) {
  Json ended = Json::array();
  for (const EndedSequence& e : plan.ended) {
    ended.append(Json::object({{"id", integer(e.id)}, {"reason", Json::string(describe(e))}}));
  }
  Json encode = Json::array();
  for (const EncodeSlice& slice : plan.encode) {
    encode.append(Json::object({{"id", integer(slice.id)},
                                {"media", integer(slice.media)},
                                {"blocks", Json::integer(slice.n_blocks)}}));
  }
  Json rows = Json::array();
  for (const RowSlice& slice : plan.rows) {
    rows.append(Json::object({{"id", integer(slice.id)},
                              {"rows", Json::integer(slice.n_rows)},
                              {"new_pages", Json::integer(slice.n_new_pages)}}));
  }
  return Json::object({{"ended", std::move(ended)},
                       {"preempt", integers(plan.preempt)},
                       {"paused", integers(plan.paused)},
                       {"admit", integers(plan.admit)},
                       {"encode", std::move(encode)},
                       {"rows", std::move(rows)},
                       {"predicted_ms", Json::number(plan.predicted_ms)},
                       {"blocked", Json::string(std::string(shortage_name(plan.blocked)))}});
}

}  // namespace

/// Writes the snapshot; returns where it is, or why there is none.
std::string Engine::write_failure(const Status& cause, const StepPlan* plan) const {
  if (config_.failure_folder.empty()) return "no snapshot: EngineConfig::failure_folder is not set";
  Json sequences = Json::array();
  for (const auto& [id, s] : sequences_) sequences.append(json_of(*s));
  Json error = Json::object({{"code", Json::string(std::string(status_code_name(cause.code())))},
                             {"message", Json::string(cause.message())}});
  const Json snapshot = Json::object({{"version", Json::integer(kSnapshotVersion)},
                                      {"error", std::move(error)},
                                      {"time_ms", Json::number(now_ms_())},
                                      {"sequences", std::move(sequences)},
                                      {"pages", json_of(runner_->pages())},
                                      {"caches", json_of(index_, encoder_.cache())},
                                      {"plan", plan != nullptr ? json_of(*plan) : Json()}});
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  const std::string path = fmt::format(
      "{}/triptych-failure-{}-{}.json", config_.failure_folder,
      std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count(), ::getpid());
  const Status written = write_file(path, snapshot.dump(1));
  return written.is_ok() ? "snapshot in " + path : "no snapshot: " + written.message();
}

/// Returns the error of those who were in the step. The first failure explains the others: it alone
/// is written and kept.
Status Engine::fail_engine(const Status& cause, const StepPlan* plan) {
  if (!failure_.is_ok()) return cause;
  const Status error = internal_error(
      fmt::format("a step failed: {} ({})", cause.message(), write_failure(cause, plan)));
  failure_ = Status(StatusCode::kUnavailable,
                    "the engine takes no more requests and must be restarted: " + error.message());
  log_error(error.message());
  return error;
}

void Engine::fail_all(const Status& cause, const StepPlan* plan, Events& events) {
  const Status error = fail_engine(cause, plan);
  while (!sequences_.empty()) fail(*sequences_.begin()->second, error, events);
}

}  // namespace triptych
