#pragma once

#include "sched/answer_lengths.h"
#include "sched/byte_factor.h"
#include "sched/cost_model.h"

namespace triptych {

/// What has been learnt so far. A plan only reads it; the engine feeds it after each step.
struct Predictors {
  CostModel cost;
  AnswerLengths lengths;
  ByteFactor media_bytes;

  explicit Predictors(const CostPriors& priors, Precision precision = Precision::kF32)
      : cost(priors), media_bytes(precision) {}
};

}  // namespace triptych
