#include "sched/model_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sched/chunking.h"
#include "sched/deadline.h"
#include "sched/kv_pages.h"
#include "sched/reservation.h"

namespace triptych {
namespace {

Status breach(std::string what) { return internal_error("plan: " + std::move(what)); }

}  // namespace

ModelEngine::ModelEngine(const ModelMachine& machine, const SchedulerConfig& config,
                         const CostPriors& priors, uint64_t seed)
    : machine_(machine), config_(config), predictors_(priors), random_(seed) {
  snapshot_.total_pages = snapshot_.free_pages = machine.total_pages;
  snapshot_.media_bytes_cap = machine.media_bytes_cap;
}

uint64_t ModelEngine::submit(const TraceRequest& request) {
  SequenceState s;
  s.id = places_.size() + 1;
  s.service_class = request.service_class;
  s.tenant = request.tenant;
  s.arrival_ms = request.arrival_ms;
  s.expires_ms = request.expires_ms;
  s.n_tokens = s.n_prompt = request.n_prompt;
  s.max_new = request.max_new;
  s.media = request.media;
  for (const MediaState& media : s.media) users_[media.item].push_back(s.id);
  places_.push_back({.n_answer = std::clamp<int64_t>(request.n_answer, 1, request.max_new)});
  const uint64_t id = s.id;
  put(std::move(s), false);
  return id;
}

void ModelEngine::cancel(uint64_t id) {
  if (!places_[id - 1].gone) finish(id, Outcome::kCancelled);
}

void ModelEngine::wait_until(double ms) { snapshot_.now_ms = std::max(snapshot_.now_ms, ms); }

void ModelEngine::put(SequenceState sequence, bool running) {
  std::vector<SequenceState>& list = running ? snapshot_.running : snapshot_.waiting;
  Place& place = places_[sequence.id - 1];
  place.running = running;
  place.index = list.size();
  list.push_back(std::move(sequence));
}

SequenceState ModelEngine::take_out(uint64_t id) {
  const Place& place = places_[id - 1];
  std::vector<SequenceState>& list = place.running ? snapshot_.running : snapshot_.waiting;
  SequenceState taken = std::move(list[place.index]);
  if (place.index + 1 < list.size()) {
    list[place.index] = std::move(list.back());
    places_[list[place.index].id - 1].index = place.index;
  }
  list.pop_back();
  return taken;
}

SequenceState* ModelEngine::running(uint64_t id) {
  if (id == 0 || id > places_.size()) return nullptr;
  const Place& place = places_[id - 1];
  return place.running && !place.gone ? &snapshot_.running[place.index] : nullptr;
}

void ModelEngine::free_pages(SequenceState& sequence) {
  const auto kept =
      static_cast<int64_t>(machine_.evictable * static_cast<double>(sequence.n_pages_held));
  snapshot_.evictable_pages += kept;
  snapshot_.free_pages += sequence.n_pages_held - kept;
  sequence.n_pages_held = sequence.n_pages_own = sequence.n_cached = 0;
}

void ModelEngine::finish(uint64_t id, Outcome outcome) {
  SequenceState s = take_out(id);
  Place& place = places_[id - 1];
  place.gone = true;
  snapshot_.media_bytes_in_use -= place.media_bytes;
  place.media_bytes = 0;
  free_pages(s);
  for (const MediaState& media : s.media) {
    std::vector<uint64_t>& users = users_[media.item];
    users.erase(std::find(users.begin(), users.end(), id));
    if (users.empty()) users_.erase(media.item);
  }
  predictors_.lengths.observe(s.service_class, s.n_drawn(),
                              outcome == Outcome::kFinished && s.n_drawn() < s.max_new);
  results_.push_back({id, outcome, s.service_class, s.arrival_ms, s.first_token_ms,
                      snapshot_.now_ms, s.n_drawn(), !s.media.empty(), s.n_preempted});
}

void ModelEngine::reserve_media(const SequenceState& sequence) {
  Place& place = places_[sequence.id - 1];
  snapshot_.media_bytes_in_use -= place.media_bytes;
  place.media_bytes = media_bytes_to_reserve(sequence, predictors_.media_bytes);
  snapshot_.media_bytes_in_use += place.media_bytes;
}

Status ModelEngine::preempt(uint64_t id) {
  if (running(id) == nullptr) return breach(fmt::format("preempts {}, which does not run", id));
  SequenceState s = take_out(id);
  free_pages(s);
  ++s.n_preempted;
  snapshot_.media_bytes_in_use -= places_[id - 1].media_bytes;
  places_[id - 1].media_bytes = 0;
  for (MediaState& media : s.media) {
    const double chance = std::uniform_real_distribution<double>(0, 1)(random_);
    if (users_[media.item].size() > 1 || chance >= machine_.lost_features) continue;
    media.encoded = false;
    media.blocks_left = media.blocks_total;
  }
  put(std::move(s), false);
  return Status::ok();
}

Status ModelEngine::admit(uint64_t id) {
  if (id == 0 || id > places_.size() || places_[id - 1].gone || places_[id - 1].running) {
    return breach(fmt::format("admits {}, which does not wait", id));
  }
  SequenceState s = take_out(id);
  reserve_media(s);
  put(std::move(s), true);
  if (snapshot_.media_bytes_in_use > snapshot_.media_bytes_cap) return breach("too many media");
  if (static_cast<int64_t>(snapshot_.running.size()) > config_.max_running) {
    return breach("too many sequences run");
  }
  return Status::ok();
}

Status ModelEngine::take_pages(const RowSlice& slice) {
  SequenceState* s = running(slice.id);
  if (s == nullptr) return breach(fmt::format("rows for {}, which does not run", slice.id));
  const int64_t wanted = kv_pages_to_add(*s, slice.n_rows, config_.page_tokens);
  if (wanted != slice.n_new_pages) return breach("pages counted wrongly");
  const int64_t free = std::min(wanted, snapshot_.free_pages);
  snapshot_.free_pages -= free;
  snapshot_.evictable_pages -= wanted - free;
  s->n_pages_held += wanted;
  s->n_pages_own += wanted;
  return snapshot_.evictable_pages < 0 ? breach("more pages than there are") : Status::ok();
}

Status ModelEngine::encode(const EncodeSlice& slice) {
  SequenceState* s = running(slice.id);
  if (s == nullptr || slice.media >= s->media.size()) return breach("encodes nothing");
  const MediaState before = s->media[slice.media];
  if (before.encoded || slice.n_blocks < 1 || slice.n_blocks > before.blocks_left) {
    return breach(fmt::format("{} blocks of {} left", slice.n_blocks, before.blocks_left));
  }
  for (const uint64_t user : users_[before.item]) {
    const Place& place = places_[user - 1];
    SequenceState& u = (place.running ? snapshot_.running : snapshot_.waiting)[place.index];
    for (MediaState& media : u.media) {
      if (media.item != before.item) continue;
      media.blocks_left = before.blocks_left - slice.n_blocks;
      media.encoded = media.blocks_left == 0;
    }
  }
  return Status::ok();
}

// Ends, preemptions, admissions and encoding.
Status ModelEngine::start(const StepPlan& plan) {
  for (const EndedSequence& ended : plan.ended) {
    if (ended.id == 0 || ended.id > places_.size() || places_[ended.id - 1].gone) {
      return breach(fmt::format("ends {}, which is not there", ended.id));
    }
    finish(ended.id, Outcome::kEnded);
  }
  for (const uint64_t id : plan.preempt) TRIPTYCH_RETURN_IF_ERROR(preempt(id));
  for (const uint64_t id : plan.admit) TRIPTYCH_RETURN_IF_ERROR(admit(id));
  for (const RowSlice& slice : plan.rows) TRIPTYCH_RETURN_IF_ERROR(take_pages(slice));
  for (const EncodeSlice& slice : plan.encode) TRIPTYCH_RETURN_IF_ERROR(encode(slice));
  return Status::ok();
}

Status ModelEngine::check_rows(const StepPlan& plan) {
  int64_t n_rows = 0;
  std::vector<uint64_t> seen;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const RowSlice& slice = plan.rows[i];
    const SequenceState& s = *running(slice.id);
    n_rows += slice.n_rows;
    seen.push_back(slice.id);
    const auto ready = ready_rows(s, [](const MediaState& media) { return media.encoded; });
    if (slice.n_rows < 1 || slice.n_rows > std::min(ready, config_.chunk_rows)) {
      return breach(fmt::format("{} rows where {} are ready", slice.n_rows, ready));
    }
    for (const MediaState& media : s.media) {
      const int64_t end = s.n_cached + slice.n_rows;
      if (media.position < end && end < media.end() && media.length <= config_.chunk_rows) {
        return breach(fmt::format("a chunk of {} ends inside a media span", slice.id));
      }
    }
    if ((i < plan.n_decode_rows) && !s.decoding()) return breach("not a decode row");
  }
  std::sort(seen.begin(), seen.end());
  if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) return breach("rows twice");
  if (n_rows > config_.step_rows) return breach(fmt::format("{} rows in a step", n_rows));
  for (const SequenceState& s : snapshot_.running) {
    if (!s.decoding() || std::binary_search(seen.begin(), seen.end(), s.id)) continue;
    if (std::find(plan.paused.begin(), plan.paused.end(), s.id) == plan.paused.end()) {
      return breach(fmt::format("{} decodes and has no row", s.id));
    }
    if (next_token_due(s, config_) < snapshot_.now_ms + plan.budget_ms) {
      return breach(fmt::format("{} waits and has no lead", s.id));
    }
  }
  return Status::ok();
}

Status ModelEngine::check_times(const StepPlan& plan) {
  if (plan.n_decode_rows == 0) return Status::ok();
  constexpr double kRounding = 1e-6;
  if (config_.slice_encoding &&
      plan.encode.size() + static_cast<size_t>(plan.encode_shape.encode_blocks) > 2 &&
      plan.predicted_encode_ms > config_.encode_slice_ms + kRounding) {
    return breach("encoding takes longer than its slice");
  }
  const size_t n_chunks = plan.rows.size() - plan.n_decode_rows;
  const double limit = plan.budget_ms * config_.step_fill;
  if (n_chunks == 0 || plan.predicted_ms <= limit + kRounding || !config_.slice_encoding) {
    return Status::ok();
  }
  const RowSlice& chunk = plan.rows.back();
  const SequenceState& s = *running(chunk.id);
  const bool whole_span = smallest_chunk(s, config_.chunk_rows) == chunk.n_rows;
  if (n_chunks == 1 && (chunk.n_rows <= config_.min_chunk_rows || whole_span)) return Status::ok();
  return breach(fmt::format("{:.3f} ms planned where {:.3f} are left", plan.predicted_ms, limit));
}

double ModelEngine::true_rows_ms(const StepShape& shape) const {
  if (shape.rows == 0) return 0;
  const CostPriors& t = machine_.truth;
  return std::max(t.weights_ms, shape.rows * t.row_ms) + shape.rows * t.row_overhead_ms +
         shape.prefill_pairs * t.pair_ms +
         (shape.decode_text_tokens + shape.decode_media_tokens) * t.kv_token_ms;
}

double ModelEngine::noisy(double ms) {
  return ms * std::exp(std::normal_distribution<double>(0, machine_.noise)(random_));
}

// Rows go through, tokens are drawn, answers end.
Status ModelEngine::forward(const StepPlan& plan) {
  std::vector<uint64_t> finished;
  for (const RowSlice& slice : plan.rows) {
    SequenceState& s = *running(slice.id);
    s.n_cached += slice.n_rows;
    if (!s.media.empty() && s.n_cached <= s.n_prompt) reserve_media(s);
    if (s.pending_rows() > 0) continue;
    ++s.n_tokens;
    if (s.n_drawn() == 1) s.first_token_ms = snapshot_.now_ms;
    s.last_token_ms = snapshot_.now_ms;
    if (s.n_drawn() >= places_[s.id - 1].n_answer) finished.push_back(s.id);
  }
  for (const uint64_t id : finished) finish(id, Outcome::kFinished);
  return Status::ok();
}

Result<StepReport> ModelEngine::step() {
  StepReport report{plan_step(snapshot_, config_, predictors_), 0};
  const StepPlan& plan = report.plan;
  TRIPTYCH_RETURN_IF_ERROR(start(plan));
  TRIPTYCH_RETURN_IF_ERROR(check_rows(plan));
  TRIPTYCH_RETURN_IF_ERROR(check_times(plan));
  const CostPriors& t = machine_.truth;
  const double encode_ms = noisy(plan.encode_shape.encode_gflop * t.encode_gflop_ms +
                                 plan.encode_shape.encode_blocks * t.encode_block_ms);
  const double rows_ms = noisy(true_rows_ms(plan.rows_shape));
  predictors_.cost.observe(plan.encode_shape, encode_ms);
  predictors_.cost.observe(plan.rows_shape, rows_ms);
  report.ms = encode_ms + rows_ms;
  snapshot_.now_ms += report.ms;
  snapshot_.fairness = plan.fairness;
  TRIPTYCH_RETURN_IF_ERROR(forward(plan));
  return report;
}

}  // namespace triptych
