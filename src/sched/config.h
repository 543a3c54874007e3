#pragma once

#include <array>
#include <cstdint>

#include "base/status.h"
#include "sched/service_class.h"
#include "sched/snapshot.h"

namespace triptych {

/// What a class of requests is promised.
struct ClassPolicy {
  double ttft_ms = 1000;        ///< arrival to first token
  double tpot_ms = 100;         ///< mean time of a further token
  double shed_factor = kNever;  ///< refuse when the first token would take this many targets
};

/// How many KV pages a running sequence counts for when another asks to come in.
enum class AdmissionRule : uint8_t {
  kForecast,     ///< its prompt and the answer that lengths seen so far let expect
  kPromptOnly,   ///< its prompt: optimistic, pays with preemption
  kWholeLength,  ///< prompt and max_new, kept free for it from the start: never preempts
};

/// Who comes first.
enum class QueueOrder : uint8_t {
  kDeadline,  ///< class, ageing, tenants in turn, earliest deadline
  kArrival,   ///< first come, first served, nobody passes
};

struct SchedulerConfig {
  std::array<ClassPolicy, kServiceClasses> classes = {
      ClassPolicy{.ttft_ms = 1000, .tpot_ms = 50}, ClassPolicy{.ttft_ms = 4000, .tpot_ms = 100},
      ClassPolicy{.ttft_ms = 60000, .tpot_ms = 500}};
  AdmissionRule admission = AdmissionRule::kForecast;
  QueueOrder order = QueueOrder::kDeadline;

  int64_t page_tokens = 16;
  int64_t step_rows = 640;      ///< rows of a step, decode and prefill
  int64_t chunk_rows = 512;     ///< rows of one sequence's prefill chunk
  int64_t min_chunk_rows = 16;  ///< prefill that goes on even when decode takes the whole step
  int64_t max_running = 128;

  double encode_slice_ms = 8;  ///< work for media in a step; one block at least
  double media_share = 0.1;    ///< of the time beside decoding, for media that are not pressed
  bool slice_encoding = true;  ///< false: an item is encoded in one step, for comparison
  double step_fill = 0.9;      ///< of the time to the next token's deadline that a plan may use
  double decode_share = 0.8;   ///< of the tightest TPOT that decode rows alone may take
  double max_gap_factor = 2;   ///< longest step beside decoding, in TPOT targets

  double backlog_ms = 250;      ///< work before first tokens, beyond which nobody else comes in
  double ageing_ms = 30000;     ///< waiting time that lifts a request by one class
  int64_t drr_quantum = 2048;   ///< tokens a tenant gets each round
  int32_t max_preemptions = 2;  ///< then a sequence comes back only with its whole length reserved
  double pause_below = 0.06;    ///< of all pages: fewer left, and those ahead of their pace wait
  bool push_out = false;        ///< a higher class may preempt a lower one to make its deadline
  double headroom = 0;          ///< of all pages that admission leaves free beyond its forecast
  double forecast_sigmas = 1.75;  ///< standard deviations added to the expected page use

  const ClassPolicy& policy(ServiceClass c) const { return classes[static_cast<size_t>(c)]; }
};

/// kInvalidArgument naming the field: budgets that could never let a legal request through.
Status validate(const SchedulerConfig& config);

}  // namespace triptych
