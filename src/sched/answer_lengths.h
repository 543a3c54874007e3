#pragma once

#include <array>
#include <cstdint>

#include "sched/service_class.h"

namespace triptych {

/// How long answers get, learnt for each class from those seen: a Kaplan-Meier estimate over
/// buckets of a quarter octave, so that answers cut off by max_new, cancel or preemption teach what
/// they can. Old answers fade. Before anything is known an answer is expected to run to its limit,
/// which is what a static reservation assumes.
class AnswerLengths {
 public:
  AnswerLengths();

  /// An answer stopped at `n_tokens`; `by_itself` is false when something cut it off.
  void observe(ServiceClass service_class, int64_t n_tokens, bool by_itself);

  /// Probability that an answer of `n_drawn` tokens gets `n_more` more.
  double survival(ServiceClass service_class, int64_t n_drawn, int64_t n_more) const;
  /// Expected tokens of an answer that may have at most `max_new`.
  double mean(ServiceClass service_class, int64_t max_new) const;

 private:
  static constexpr size_t kBuckets = 80;  // to 2^20 tokens
  struct PerClass {
    std::array<double, kBuckets> at_risk;
    std::array<double, kBuckets> ended;
    std::array<double, kBuckets> survival;  ///< past the bucket
  };
  static size_t bucket(int64_t n_tokens);
  static void refresh(PerClass& lengths);

  std::array<PerClass, kServiceClasses> classes_;
};

}  // namespace triptych
