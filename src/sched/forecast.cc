#include "sched/forecast.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "sched/kv_pages.h"

namespace triptych {

const std::array<int64_t, Forecast::kHorizons> Forecast::kTokensAhead = {
    0, 16, 32, 48, 72, 108, 162, 243, 365, 547, 820, 1230, 1845, 2768, 4152, 6228, 9342, INT64_MAX};

Forecast::Forecast(int64_t pages_in_use, int64_t page_tokens, bool only_now)
    : pages_in_use_(pages_in_use), page_tokens_(page_tokens), only_now_(only_now) {}

void Forecast::add_running(const SequenceState& sequence, const AnswerLengths& lengths,
                           bool promised) {
  add(sequence, lengths, promised, sequence.n_pages_held);
}

void Forecast::add_candidate(const SequenceState& sequence, const AnswerLengths& lengths,
                             bool promised) {
  add(sequence, lengths, promised, sequence.n_pages_held - sequence.n_pages_lent_idle);
}

void Forecast::add(const SequenceState& sequence, const AnswerLengths& lengths, bool promised,
                   int64_t pages_counted) {
  int64_t media_rows = 0;
  for (const MediaState& media : sequence.media) media_rows += media.length;
  const int64_t text_begin = sequence.media.empty() ? 0 : sequence.media.back().end();
  const int64_t pages_before_text =
      text_begin == 0 ? 0 : kv_pages_for_rows(sequence, text_begin, page_tokens_);
  const int64_t left = std::max<int64_t>(sequence.max_tokens() - sequence.n_tokens, 0);
  const auto freed = static_cast<double>(sequence.n_pages_own);

  for (size_t h = 0; h < kHorizons && (h == 0 || !only_now_); ++h) {
    const bool over = h > 0 && left <= kTokensAhead[h - 1];
    const int64_t ahead = std::min(kTokensAhead[h], left);
    const int64_t tokens = sequence.n_tokens + ahead;
    const int64_t last = promised ? sequence.n_tokens + left : tokens;  // kept free from the start
    const int64_t pages = pages_before_text +
                          ceil_div(std::max<int64_t>(last - text_begin, 0), page_tokens_) +
                          sequence.n_copy_pages;
    const auto growth = static_cast<double>(std::max<int64_t>(pages - pages_counted, 0));
    double alive = 1;
    if (!promised) {
      alive = over ? 0 : lengths.survival(sequence.service_class, sequence.n_drawn(), ahead);
    }
    const double swing = growth + freed;
    Horizon& horizon = horizons_[h];
    horizon.pages += alive * growth - (1 - alive) * freed;
    horizon.variance += alive * (1 - alive) * swing * swing;
    horizon.most_pages += growth;
    horizon.rows += alive;
    horizon.text_tokens += alive * static_cast<double>(tokens - media_rows);
    horizon.media_tokens += alive * static_cast<double>(media_rows);
  }
}

double Forecast::peak_pages(double sigmas) const {
  double peak = 0;
  for (const Horizon& horizon : horizons_) {
    const double likely = horizon.pages + sigmas * std::sqrt(horizon.variance);
    peak = std::max(peak, std::min(likely, horizon.most_pages));
  }
  return static_cast<double>(pages_in_use_) + peak;
}

double Forecast::slowest_decode_ms(const CostModel& cost) const {
  double slowest = 0;
  for (const Horizon& horizon : horizons_) {
    StepShape shape;
    shape.rows = horizon.rows;
    shape.decode_text_tokens = horizon.text_tokens;
    shape.decode_media_tokens = horizon.media_tokens;
    slowest = std::max(slowest, cost.predict_ms(shape));
  }
  return slowest;
}

}  // namespace triptych
