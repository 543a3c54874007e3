#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sched/config.h"
#include "sched/cost_model.h"
#include "sched/predictors.h"
#include "sched/reservation.h"
#include "sched/snapshot.h"

namespace triptych {

enum class EndReason : uint8_t {
  kExpired,       ///< its own time limit passed, or cannot be met any more
  kHopeless,      ///< its class sheds requests whose first token would come too late
  kTooManyPages,  ///< prompt and answer are larger than the whole KV pool
  kTooMuchMedia,  ///< its media are larger than all media memory
};

/// A sequence that ends without (more) work.
struct EndedSequence {
  uint64_t id = 0;
  EndReason reason = EndReason::kExpired;
  double needed = 0;  ///< pages, bytes or ms, by reason
  double limit = 0;
  bool operator==(const EndedSequence&) const = default;
};
/// One line for the caller: what was needed and what there is.
std::string describe(const EndedSequence& ended);

/// Blocks of a tower to run for one media item.
struct EncodeSlice {
  uint64_t id = 0;   ///< sequence
  size_t media = 0;  ///< index into its media
  int64_t n_blocks = 0;
  bool operator==(const EncodeSlice&) const = default;
};

/// Decoder rows of one sequence: the next `n_rows` behind what is cached.
struct RowSlice {
  uint64_t id = 0;
  int64_t n_rows = 0;
  int64_t n_new_pages = 0;  ///< to reserve before the step runs
  bool operator==(const RowSlice&) const = default;
};

/// What one step does. The engine carries it out in this order: end, preempt, admit, reserve pages,
/// encode, forward.
struct StepPlan {
  std::vector<EndedSequence> ended;
  std::vector<uint64_t> preempt;  ///< free their pages and queue them again; nothing drawn is lost
  size_t n_pushed_out = 0;       ///< of these, for a higher class; the others because pages ran out
  std::vector<uint64_t> paused;  ///< decode, but have no row now: they are early, pages are short
  std::vector<uint64_t> admit;   ///< in order
  std::vector<EncodeSlice> encode;
  std::vector<RowSlice> rows;  ///< decode rows first, then prefill chunks
  size_t n_decode_rows = 0;    ///< of `rows`
  StepShape encode_shape;      ///< for CostModel::observe with the measured time of encoding,
  StepShape rows_shape;        ///< and of the forward pass
  double predicted_encode_ms = 0;
  double predicted_ms = 0;             ///< of the whole step
  double budget_ms = 0;                ///< it was cut to this; infinite while nothing decodes
  Shortage blocked = Shortage::kNone;  ///< what kept the most urgent request out that waits on
  FairnessState fairness;              ///< for the next snapshot

  bool does_nothing() const {
    return ended.empty() && preempt.empty() && admit.empty() && encode.empty() && rows.empty();
  }
  bool operator==(const StepPlan&) const = default;
};

/// Plans a step. A pure function: same arguments, same plan, whatever the order inside the
/// snapshot's vectors. `config` must be valid.
///
/// 1. Sequences past their time and requests that can never run end.
/// 2. Every decoding sequence gets its row. When pages are short, sequences that are ahead of their
///    TPOT target wait a step, and if that is not enough others are preempted, until all decode
///    rows that go fit together.
/// 3. Waiting requests come in, in order of urgency, while bytes and step time hold them
///    (sched/reservation.h).
/// 4. Encoding gets its slice, 5. prefill chunks what is left of rows, pages and time.
///
/// A plan that does nothing means: nothing to do, or only prepared work that waits for the engine.
StepPlan plan_step(const Snapshot& snapshot, const SchedulerConfig& config,
                   const Predictors& predictors);

}  // namespace triptych
