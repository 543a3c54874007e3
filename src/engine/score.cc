#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/engine.h"

namespace triptych {
namespace {

// Logits of a few rows at a time: a whole window's would be larger than the model.
constexpr int64_t kLogitRows = 16;

/// log softmax(logits)[id]
double log_probability(const float* logits, int64_t n, int32_t id) {
  const float top = *std::max_element(logits, logits + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(logits[i]) - top);
  return static_cast<double>(logits[id]) - top - std::log(sum);
}

}  // namespace

Status Engine::score_window(const std::vector<int32_t>& ids, int64_t begin, int64_t end,
                            const std::vector<int32_t>& pages, std::vector<double>& out) {
  const int64_t vocab = model_->spec.text.vocab_size;
  TRIPTYCH_ASSIGN_OR_RETURN(Tensor logits, Tensor::allocate(DType::kF32, Shape{kLogitRows, vocab}));
  for (int64_t row = begin; row < end; row += kLogitRows) {
    const int64_t n = std::min(kLogitRows, end - row);
    const ArenaScope scope(scratch_);
    TRIPTYCH_ASSIGN_OR_RETURN(
        View hidden, scratch_.allocate(DType::kF32, Shape{n, model_->spec.text.hidden_size}));
    TRIPTYCH_RETURN_IF_ERROR(model_->decoder->embed(context(), ids.data() + row, hidden));
    TRIPTYCH_RETURN_IF_ERROR(run_decoder(hidden, row - begin, pages, logits.view().rows(0, n)));
    for (int64_t i = 0; i < n && row + i + 1 < end; ++i) {
      out.push_back(
          log_probability(logits.f32() + i * vocab, vocab, ids[static_cast<size_t>(row + i + 1)]));
    }
  }
  return Status::ok();
}

Result<std::vector<double>> Engine::score(const std::vector<int32_t>& ids, int64_t window) {
  if (!idle()) return failed_precondition("scoring needs an idle engine");
  window = std::min(window, plan_.context_tokens);
  if (window < 2) return invalid_argument("scoring needs windows of at least 2 tokens");
  std::vector<double> out;
  const auto n_ids = static_cast<int64_t>(ids.size());
  for (int64_t begin = 0; begin + 1 < n_ids; begin += window) {
    const int64_t end = std::min(n_ids, begin + window);
    std::vector<int32_t> pages;
    TRIPTYCH_RETURN_IF_ERROR(kv_.reserve(end - begin, pages));
    const Status status = score_window(ids, begin, end, pages, out);
    kv_.release(pages);
    TRIPTYCH_RETURN_IF_ERROR(status);
  }
  return out;
}

}  // namespace triptych
