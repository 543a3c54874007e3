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

Result<std::vector<double>> Engine::score(const std::vector<int32_t>& ids, int64_t window) {
  if (!idle()) return failed_precondition("scoring needs an idle engine");
  const int64_t vocab = runner_->limits().vocab_size;
  window = std::min(window, runner_->limits().context_tokens);
  if (window < 2) return invalid_argument("scoring needs windows of at least 2 tokens");
  TRIPTYCH_ASSIGN_OR_RETURN(Tensor logits, Tensor::allocate(DType::kF32, Shape{kLogitRows, vocab}));
  std::vector<double> out;
  const auto n_ids = static_cast<int64_t>(ids.size());
  for (int64_t begin = 0; begin + 1 < n_ids; begin += window) {
    const int64_t end = std::min(n_ids, begin + window);
    std::vector<int32_t> pages;
    TRIPTYCH_RETURN_IF_ERROR(runner_->pages().reserve(end - begin, pages));
    const Status status = score_window(
        std::span(ids).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)), pages,
        logits.view(), out);
    runner_->pages().release(pages);
    TRIPTYCH_RETURN_IF_ERROR(status);
  }
  return out;
}

Status Engine::score_window(std::span<const int32_t> ids, std::span<const int32_t> pages,
                            const View& logits, std::vector<double>& out) {
  const auto n_ids = static_cast<int64_t>(ids.size());
  const int64_t vocab = logits.shape[1];
  for (int64_t row = 0; row < n_ids; row += kLogitRows) {
    const int64_t n = std::min(kLogitRows, n_ids - row);
    TRIPTYCH_RETURN_IF_ERROR(
        model_runner_->logits_of(ids.subspan(static_cast<size_t>(row), static_cast<size_t>(n)), row,
                                 pages, logits.rows(0, n)));
    for (int64_t i = 0; i < n && row + i + 1 < n_ids; ++i) {
      out.push_back(
          log_probability(logits.f32() + i * vocab, vocab, ids[static_cast<size_t>(row + i + 1)]));
    }
  }
  return Status::ok();
}

}  // namespace triptych
