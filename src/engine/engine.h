#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backends/backend.h"
#include "base/settings.h"
#include "engine/memory_plan.h"
#include "engine/sampler.h"
#include "engine/token_draw.h"
#include "models/registry.h"
#include "request/request.h"

namespace triptych {

struct EngineOptions {
  Settings settings;
  PlanLimits limits;
};

/// Runs a model on prepared requests, one step at a time: plan, reserve, encode or forward, sample,
/// commit (engine/CONTRACT.md). This first form holds one sequence; submit() says kUnavailable
/// while there is one. All calls come from one thread.
class Engine {
 public:
  /// Loads weights and takes all memory of the plan.
  static Result<std::unique_ptr<Engine>> load(const Checkpoint& checkpoint, const Backend& backend,
                                              const EngineOptions& options);

  ~Engine();

  /// Takes a request. Its KV pages for the prompt are reserved here: kResourceExhausted otherwise,
  /// kOutOfRange when the prompt does not fit the context.
  Result<uint64_t> submit(PreparedRequest request);

  /// One step of work: a slice of a picture's encoding, a chunk of the prompt, or one more token.
  /// Returns what it produced: nothing, a token, or the end of the answer. An error inside the
  /// sequence ends that sequence with a kError event and frees its memory.
  std::optional<TokenEvent> step();

  /// The sequence ends at the next step, with what it has.
  void cancel(uint64_t sequence);
  bool idle() const { return sequence_ == nullptr; }

  /// Counts and times of the last or current sequence.
  const Usage& usage() const { return usage_; }

  const Model& model() const { return *model_; }
  const MemoryPlan& plan() const { return plan_; }
  const Backend& backend() const { return backend_; }
  TensorRegistry& registry() { return registry_; }
  ThreadPool& pool() { return *pool_; }
  MatmulMode matmul() const { return matmul_; }
  double load_ms() const { return load_ms_; }

  /// Log-probabilities of ids[1..] given what precedes each, in windows of the context; for
  /// perplexity. The engine must be idle.
  Result<std::vector<double>> score(const std::vector<int32_t>& ids, int64_t window);

 private:
  struct Sequence;
  Engine(const Backend& backend, ThreadPool* pool);
  OpContext context();
  Status encode_slice();
  Status run_decoder(const View& hidden, int64_t first, const std::vector<int32_t>& pages,
                     const View& logits);
  Status forward_rows(int64_t n_rows, std::vector<float>* logits);
  Status merge_media(int64_t first, int64_t n_rows, const View& hidden);
  Result<std::optional<TokenEvent>> advance();
  TokenEvent finish(FinishReason reason, int32_t token, Status error);
  Result<TokenEvent> token_event(DrawnToken drawn);
  Status score_window(const std::vector<int32_t>& ids, int64_t begin, int64_t end,
                      const std::vector<int32_t>& pages, std::vector<double>& out);

  Backend backend_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Model> model_;
  MemoryPlan plan_;
  PagePool kv_;
  Arena scratch_;
  TensorRegistry registry_;
  MatmulMode matmul_ = MatmulMode::kF32;
  double load_ms_ = 0;
  SeedSource seeds_;
  SamplerScratch sampler_scratch_;
  uint64_t next_id_ = 1;
  std::unique_ptr<Sequence> sequence_;
  Usage usage_;
};

}  // namespace triptych
