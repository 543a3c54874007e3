#pragma once

#include <memory>

#include "backends/backend.h"
#include "base/settings.h"
#include "engine/memory_plan.h"
#include "engine/step_runner.h"
#include "models/registry.h"

namespace triptych {

/// A loaded model on a backend with all memory of the plan: weights, KV pages, step workspace.
class ModelRunner final : public StepRunner {
 public:
  /// Loads weights and takes the plan's memory. Errors name file, setting or tensor.
  static Result<std::unique_ptr<ModelRunner>> load(const Checkpoint& checkpoint,
                                                   const Backend& backend, const Settings& settings,
                                                   const PlanLimits& plan_limits);

  const RunnerLimits& limits() const override { return limits_; }
  PagePool& pages() override { return kv_; }
  Status encode(EncodeJob& job, int64_t n_blocks) override;
  Result<View> forward(std::span<const SequenceStep> batch) override;

  /// Logits [ids.size(), vocab_size] of rows that all belong to one sequence; for scoring.
  Status logits_of(std::span<const int32_t> ids, int64_t first, std::span<const int32_t> pages,
                   const View& logits);

  const Model& model() const { return *model_; }
  const MemoryPlan& plan() const { return plan_; }
  const Backend& backend() const { return backend_; }
  TensorRegistry& registry() { return registry_; }
  ThreadPool& pool() { return *pool_; }
  MatmulMode matmul() const { return matmul_; }
  double load_ms() const { return load_ms_; }

 private:
  ModelRunner(const Backend& backend, ThreadPool* pool) : backend_(backend), pool_(pool) {}
  OpContext context();
  void measure_costs(DType kv_dtype);
  Status embed(std::span<const SequenceStep> batch, const View& hidden);
  Status merge_media(const SequenceStep& step, const View& hidden);

  Backend backend_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Model> model_;
  MemoryPlan plan_;
  RunnerLimits limits_;
  PagePool kv_;
  Arena scratch_;
  View logits_;  ///< [max_sequences, vocab_size], at the start of scratch
  TensorRegistry registry_;
  MatmulMode matmul_ = MatmulMode::kF32;
  double load_ms_ = 0;
};

}  // namespace triptych
