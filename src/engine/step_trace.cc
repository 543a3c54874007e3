// A step as the trace shows it.
#include "engine/engine.h"

namespace triptych {

void Engine::trace_step(const StepPlan& plan, const StepTimes& times) const {
  TraceWriter& trace = *config_.trace;
  const auto count = [](const auto& list) { return static_cast<double>(list.size()); };
  int64_t n_rows = 0;
  for (const RowSlice& slice : plan.rows) n_rows += slice.n_rows;
  int64_t n_blocks = 0;
  for (const EncodeSlice& slice : plan.encode) n_blocks += slice.n_blocks;
  trace.counter("batch size", times.plan, count(plan.rows));
  trace.slice(track_, "step", times.plan, times.end,
              {{"admitted", count(plan.admit)},
               {"preempted", count(plan.preempt)},
               {"paused", count(plan.paused)},
               {"ended", count(plan.ended)},
               {"predicted_ms", plan.predicted_ms}});
  trace.slice(track_, "plan", times.plan, times.encode);
  if (n_blocks > 0) {
    trace.slice(track_, "encode", times.encode, times.forward,
                {{"items", count(plan.encode)}, {"blocks", static_cast<double>(n_blocks)}});
  }
  if (n_rows > 0) {
    trace.slice(track_, "forward", times.forward, times.end,
                {{"sequences", count(plan.rows)}, {"rows", static_cast<double>(n_rows)}});
  }
  const PagePool& pages = runner_->pages();
  trace.counter("KV pages in use", times.end,
                static_cast<double>(pages.n_pages() - pages.n_free() - pages.n_reclaimable()));
  trace.counter("KV pages cached", times.end, static_cast<double>(pages.n_reclaimable()));
  if (sequences_.empty()) trace.counter("batch size", times.end, 0);
}

}  // namespace triptych
