#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cache/kv/sequence_pages.h"
#include "engine/media_encoder.h"
#include "engine/sampler.h"
#include "observe/timeline.h"
#include "request/request.h"
#include "sched/snapshot.h"

namespace triptych {

/// How the engine is to treat a request beside others.
struct SubmitOptions {
  ServiceClass service_class = ServiceClass::kStandard;
  uint32_t tenant = 0;  ///< for fairness; tenants share no cached prefix or features either
  /// From the arrival; 0: none. An answer that is not finished by then ends with kDeadlineExceeded.
  double deadline_ms = 0;
  /// That the caller took to get the media, before submit: the timeline begins with it.
  double fetch_ms = 0;

  /// When a request that arrived at `arrival_ms` has run out of time; kNever without a deadline.
  double expires_ms(double arrival_ms) const {
    return deadline_ms > 0 ? arrival_ms + deadline_ms : kNever;
  }
};

/// A request in work. Written by the engine's thread alone.
struct Sequence {
  Sequence(uint64_t sequence_id, std::shared_ptr<const PreparedRequest> prepared,
           const SubmitOptions& submit_options, SequencePages pages, Sampler own_sampler)
      : id(sequence_id),
        group(sequence_id),
        options(submit_options),
        request(std::move(prepared)),
        ids(request->ids),
        kv(std::move(pages)),
        sampler(std::move(own_sampler)) {}

  uint64_t id;
  uint64_t group;        ///< id of the request: of its first answer
  uint32_t choice = 0;   ///< index of the answer among the n of its request
  uint32_t n_forks = 0;  ///< further answers that start when the prompt is in the cache
  uint64_t seed = 0;     ///< of the request, for the samplers of these
  SubmitOptions options;
  std::shared_ptr<const PreparedRequest> request;
  std::vector<int32_t> ids;  ///< prompt, then drawn tokens
  SequencePages kv;          ///< table over all of `ids`; n_stored() of them are in the cache
  Sampler sampler;
  std::vector<MediaUse> media;  ///< by media index
  int64_t max_new = 0;
  bool running = false;
  bool cancelled = false;

  double first_token_ms = kNotYet;  ///< on the engine's clock, as all times
  double last_token_ms = kNotYet;
  double encoded_ms = kNotYet;  ///< when the last features came, until the step that needs them all
  Usage usage;
  Timeline timeline;

  int64_t n_tokens() const { return static_cast<int64_t>(ids.size()); }
  int64_t n_prompt() const { return usage.prompt_tokens; }
  int64_t n_cached() const { return kv.n_stored(); }
  /// Whether a span's features must be there before its rows can run.
  bool needs(const Span& span) const { return span.position + span.length > n_cached(); }
  double arrival_ms() const { return timeline.arrival_ms; }
  double expires_ms() const { return options.expires_ms(arrival_ms()); }
  Stage stage() const;
};

}  // namespace triptych
