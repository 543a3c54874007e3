#pragma once

#include <cstdint>

#include "sched/error_window.h"
#include "sched/recursive_fit.h"

namespace triptych {

/// What a step computes, in the terms that its time depends on.
struct StepShape {
  double rows = 0;                 ///< decoder rows, decode and prefill
  double prefill_pairs = 0;        ///< rows times the tokens each looks at, in prefill chunks
  double decode_text_tokens = 0;   ///< cached text tokens that decode rows read
  double decode_media_tokens = 0;  ///< cached media tokens that they read
  double encode_gflop = 0;
  double encode_blocks = 0;

  /// A chunk of `n` rows behind `n_cached` rows.
  void add_prefill(double n, double n_cached) {
    rows += n;
    prefill_pairs += n * (n_cached + (n + 1) / 2);
  }
  void add_decode(double text_tokens, double media_tokens) {
    rows += 1;
    decode_text_tokens += text_tokens;
    decode_media_tokens += media_tokens;
  }
  void add_encode(double blocks, double block_gflop) {
    encode_blocks += blocks;
    encode_gflop += blocks * block_gflop;
  }
  bool operator==(const StepShape&) const = default;
};

/// The starting model, from what the machine and the model's cost functions say. Milliseconds.
struct CostPriors {
  double weights_ms = 10;          ///< reading all decoder weights once
  double row_ms = 0.2;             ///< computing a row when many share the weights
  double row_overhead_ms = 0.005;  ///< sampling, norms: per row, never hidden behind the weights
  double pair_ms = 1e-5;           ///< one row looking at one token in prefill
  double kv_token_ms = 1e-4;       ///< reading one token's keys and values
  double text_kv_weight = 0.6;
  double media_kv_weight = 1.4;
  double encode_gflop_ms = 0.02;
  double encode_block_ms = 0.05;
};

/// Predicts how long a step takes and learns from what it took: the starting model's terms with a
/// factor each, fitted online. Only `observe` changes it. Rows that do not compute longer than the
/// weights take to read come along for nothing, as on a roofline.
class CostModel {
 public:
  explicit CostModel(const CostPriors& priors) : priors_(priors) {}

  double predict_ms(const StepShape& shape) const { return fit_.predict(parts(shape)); }
  /// Takes `measured_ms` of a step; encoding and rows may be reported apart or together.
  void observe(const StepShape& shape, double measured_ms);

  double encode_ms(double blocks, double block_gflop) const;
  /// Most rows (0 to `most`) that can join `shape` as a chunk behind `n_cached` rows without its
  /// time passing `limit_ms`.
  int64_t prefill_rows_within(const StepShape& shape, int64_t n_cached, int64_t most,
                              double limit_ms) const;

  /// Relative error that 95 % of the latest predictions kept to.
  double p95_relative_error() const { return errors_.quantile(0.95); }
  const CostPriors& priors() const { return priors_; }
  const RecursiveFit& fit() const { return fit_; }

 private:
  RecursiveFit::Parts parts(const StepShape& shape) const;

  CostPriors priors_;
  RecursiveFit fit_;
  ErrorWindow errors_;
};

}  // namespace triptych
