#include "sched/reservation.h"

#include <algorithm>

#include "sched/kv_pages.h"

namespace triptych {

std::string_view shortage_name(Shortage shortage) {
  switch (shortage) {
    case Shortage::kNone:
      return "";
    case Shortage::kSlots:
      return "slots";
    case Shortage::kPages:
      return "KV pages";
    case Shortage::kMediaBytes:
      return "media memory";
    case Shortage::kTime:
      return "step time";
  }
  return "";
}

bool is_promised(const SequenceState& sequence, const SchedulerConfig& config) {
  return config.admission == AdmissionRule::kWholeLength ||
         sequence.n_preempted >= config.max_preemptions;
}

int64_t promised_pages_left(const SequenceState& sequence, const SchedulerConfig& config) {
  if (!is_promised(sequence, config)) return 0;
  return kv_pages_to_add(sequence, sequence.max_tokens() - sequence.n_cached, config.page_tokens);
}

int64_t pages_to_come_in(const SequenceState& sequence, int64_t n_rows,
                         const SchedulerConfig& config) {
  return kv_pages_to_add(sequence, n_rows - sequence.n_cached, config.page_tokens) +
         sequence.n_pages_lent_idle;
}

uint64_t media_bytes_to_reserve(const SequenceState& sequence, const ByteFactor& factor) {
  uint64_t bytes = 0;
  for (const MediaState& media : sequence.media) {
    if (media.end() > sequence.n_cached) bytes += factor.reserve(media.bytes);
  }
  return bytes;
}

Reservation::Reservation(const Room& room, const SchedulerConfig& config,
                         const Predictors& predictors)
    : room_(room),
      config_(&config),
      predictors_(&predictors),
      forecast_(room.total_pages - room.pages_left, config.page_tokens,
                config.admission != AdmissionRule::kForecast) {}

void Reservation::tighten(const SequenceState& sequence) {
  tightest_tpot_ms_ = std::min(tightest_tpot_ms_, config_->policy(sequence.service_class).tpot_ms);
  ++n_running_;
}

void Reservation::add_running(const SequenceState& sequence) {
  forecast_.add_running(sequence, predictors_->lengths, is_promised(sequence, *config_));
  promised_pages_ += promised_pages_left(sequence, *config_);
  tighten(sequence);
}

Shortage Reservation::check(const SequenceState& candidate) const {
  if (n_running_ >= config_->max_running) return Shortage::kSlots;
  if (media_bytes_to_reserve(candidate, predictors_->media_bytes) > room_.media_bytes_left) {
    return Shortage::kMediaBytes;
  }
  const bool promised = is_promised(candidate, *config_);
  const int64_t rows = promised ? candidate.max_tokens() : candidate.n_tokens;
  if (pages_to_come_in(candidate, rows, *config_) >
      room_.pages_left - room_.pages_taken - promised_pages_) {
    return Shortage::kPages;
  }
  // With nobody beside it, its whole length is what the pool was checked against on arrival.
  if (n_running_ == 0 || config_->admission == AdmissionRule::kWholeLength) return Shortage::kNone;

  Forecast with = forecast_;
  with.add_candidate(candidate, predictors_->lengths, promised);
  if (with.peak_pages(config_->forecast_sigmas) >
      static_cast<double>(room_.total_pages) * (1 - config_->headroom)) {
    return Shortage::kPages;
  }
  const double tpot = std::min(tightest_tpot_ms_, config_->policy(candidate.service_class).tpot_ms);
  if (config_->admission == AdmissionRule::kForecast &&
      with.slowest_decode_ms(predictors_->cost) > tpot * config_->decode_share) {
    return Shortage::kTime;
  }
  return Shortage::kNone;
}

void Reservation::admit(const SequenceState& candidate) {
  const bool promised = is_promised(candidate, *config_);
  forecast_.add_candidate(candidate, predictors_->lengths, promised);
  if (promised) {
    promised_pages_ += pages_to_come_in(candidate, candidate.max_tokens(), *config_);
  }
  room_.media_bytes_left -=
      std::min(room_.media_bytes_left, media_bytes_to_reserve(candidate, predictors_->media_bytes));
  tighten(candidate);
}

}  // namespace triptych
