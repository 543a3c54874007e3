#pragma once

#include <array>
#include <cstdint>

#include "sched/answer_lengths.h"
#include "sched/cost_model.h"
#include "sched/snapshot.h"

namespace triptych {

/// What a set of sequences will hold and read as their answers grow, if nobody else comes in: KV
/// pages (mean, spread and the most possible) and the shape of a decode step after 0, 16, 32, 48,
/// 72, ... further tokens each. Sequences end with the probabilities of AnswerLengths and at
/// max_new.
class Forecast {
 public:
  /// `pages_in_use`: pages in tables now. `only_now` looks at prompts and tokens
  /// drawn so far alone.
  Forecast(int64_t pages_in_use, int64_t page_tokens, bool only_now);

  /// A sequence whose held pages are among `pages_in_use`. A `promised` one counts in full to its
  /// limit.
  void add_running(const SequenceState& sequence, const AnswerLengths& lengths, bool promised);
  /// One that would come in: all its pages are new but those lent to it that others hold anyway.
  void add_candidate(const SequenceState& sequence, const AnswerLengths& lengths, bool promised);

  /// Most pages in use at any time ahead: mean and `sigmas` standard deviations, never more than
  /// every sequence at its limit.
  double peak_pages(double sigmas) const;
  /// Slowest decode step ahead, as the mean of the forecast has it. ms.
  double slowest_decode_ms(const CostModel& cost) const;

 private:
  struct Horizon {
    double pages = 0;  ///< mean change from now
    double variance = 0;
    double most_pages = 0;
    double rows = 0;
    double text_tokens = 0;
    double media_tokens = 0;
  };
  static constexpr size_t kHorizons = 18;
  static const std::array<int64_t, kHorizons> kTokensAhead;

  void add(const SequenceState& sequence, const AnswerLengths& lengths, bool promised,
           int64_t pages_counted);

  int64_t pages_in_use_;
  int64_t page_tokens_;
  bool only_now_;
  std::array<Horizon, kHorizons> horizons_{};
};

}  // namespace triptych
