#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sched/service_class.h"

namespace triptych {

inline constexpr double kNever = std::numeric_limits<double>::infinity();
inline constexpr double kNotYet = std::numeric_limits<double>::quiet_NaN();

/// A media item of a sequence, as far as scheduling is concerned.
struct MediaState {
  int64_t position = 0;  ///< of its first row in the sequence
  int64_t length = 0;    ///< rows
  uint64_t item = 0;     ///< same item, same number: it is encoded once for all who wait for it
  bool encoded = false;  ///< features are there
  int64_t blocks_left = 0;
  int64_t blocks_total = 0;
  double block_gflop = 0;  ///< work of one tower block, from the operators' cost functions
  uint64_t bytes = 0;      ///< pixels, tower state and features; 0 when another sequence holds them

  int64_t end() const { return position + length; }
};

/// A sequence, waiting or running. Times are milliseconds of the engine's clock.
struct SequenceState {
  uint64_t id = 0;
  ServiceClass service_class = ServiceClass::kStandard;
  uint32_t tenant = 0;
  double arrival_ms = 0;
  double expires_ms = kNever;       ///< the request's own time limit
  double first_token_ms = kNotYet;  ///< when the first token went out
  double last_token_ms = kNotYet;
  int64_t n_tokens = 0;  ///< prompt, media rows included, and drawn tokens
  int64_t n_prompt = 0;
  int64_t n_cached = 0;  ///< rows with keys and values; while waiting: those the prefix cache lends
  int64_t max_new = 0;   ///< most tokens to draw, already cut to context and pool
  int64_t n_pages_held = 0;       ///< in its table; while waiting: those the prefix cache lends
  int64_t n_pages_own = 0;        ///< of these, pages that come free when it is preempted
  int64_t n_pages_lent_idle = 0;  ///< while waiting: of the lent ones, now counted as evictable
  int64_t n_copy_pages = 0;       ///< pages to copy before its next row is written (0 or 1)
  int32_t n_preempted = 0;
  std::vector<MediaState> media;  ///< by position

  int64_t pending_rows() const { return n_tokens - n_cached; }
  int64_t n_drawn() const { return n_tokens - n_prompt; }
  int64_t max_tokens() const { return n_prompt + max_new; }
  /// One more row gives one more token, and it is not the first.
  bool decoding() const { return n_drawn() > 0 && pending_rows() == 1; }
};

/// Tokens that a tenant may still take before it is another tenant's turn.
struct TenantDeficit {
  uint32_t tenant = 0;
  int64_t tokens = 0;
  bool operator==(const TenantDeficit&) const = default;
};

/// Deficit round robin among tenants, and between decoding and media: what one plan leaves for the
/// next.
struct FairnessState {
  std::vector<TenantDeficit> deficits;  ///< tenants with waiting requests, by number
  uint32_t turn = 0;                    ///< tenant that is served next
  double media_credit_ms = 0;           ///< time that media may take beside decoding
  bool operator==(const FairnessState&) const = default;
};

/// All that the scheduler may know. Order within the vectors has no meaning.
struct Snapshot {
  double now_ms = 0;
  int64_t free_pages = 0;
  int64_t evictable_pages = 0;  ///< in the prefix cache and in no sequence's table
  int64_t total_pages = 0;
  uint64_t media_bytes_in_use = 0;  ///< held by or promised to running sequences
  uint64_t media_bytes_cap = 0;
  std::vector<SequenceState> waiting;
  std::vector<SequenceState> running;
  FairnessState fairness;

  int64_t available_pages() const { return free_pages + evictable_pages; }
};

}  // namespace triptych
