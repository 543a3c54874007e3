#include "sched/cost_model.h"

#include <algorithm>

namespace triptych {

RecursiveFit::Parts CostModel::parts(const StepShape& shape) const {
  const CostPriors& p = priors_;
  return {shape.rows > 0 ? p.weights_ms : 0.0,
          std::max(0.0, shape.rows * p.row_ms - p.weights_ms),
          shape.rows * p.row_overhead_ms,
          shape.prefill_pairs * p.pair_ms,
          shape.decode_text_tokens * p.kv_token_ms * p.text_kv_weight,
          shape.decode_media_tokens * p.kv_token_ms * p.media_kv_weight,
          shape.encode_gflop * p.encode_gflop_ms,
          shape.encode_blocks * p.encode_block_ms};
}

void CostModel::observe(const StepShape& shape, double measured_ms) {
  const RecursiveFit::Parts expected = parts(shape);
  errors_.add(fit_.predict(expected), measured_ms);
  fit_.observe(expected, measured_ms);
}

double CostModel::encode_ms(double blocks, double block_gflop) const {
  StepShape shape;
  shape.add_encode(blocks, block_gflop);
  return predict_ms(shape);
}

int64_t CostModel::prefill_rows_within(const StepShape& shape, int64_t n_cached, int64_t most,
                                       double limit_ms) const {
  const auto time = [&](int64_t n) {
    StepShape grown = shape;
    grown.add_prefill(static_cast<double>(n), static_cast<double>(n_cached));
    return predict_ms(grown);
  };
  if (most <= 0 || time(most) <= limit_ms) return std::max<int64_t>(most, 0);
  int64_t fits = 0;
  int64_t too_many = most;
  while (too_many - fits > 1) {
    const int64_t middle = fits + (too_many - fits) / 2;
    (time(middle) <= limit_ms ? fits : too_many) = middle;
  }
  return fits;
}

}  // namespace triptych
