// How a request becomes a sequence, and what the scheduler is told of one.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "cache/encoder/feature_id.h"
#include "cache/kv/invariants.h"
#include "engine/engine.h"

namespace triptych {
namespace {

// The caches belong to one engine with one model: the identity of its weights is the engine itself.
constexpr std::string_view kThisModel = "engine";

std::string tenant_salt(uint32_t tenant) { return fmt::format("tenant {}", tenant); }

/// A number that is equal for equal items; a mix-up would only make a plan a little worse.
uint64_t item_number(const MediaId& feature) {
  uint64_t out;
  std::memcpy(&out, feature.data(), sizeof(out));
  return out;
}

std::vector<MediaUse> uses_of(const PreparedRequest& request, uint32_t tenant) {
  std::vector<MediaUse> out;
  const std::string salt = tenant_salt(tenant);
  for (const std::shared_ptr<const PreparedMedia>& media : request.media) {
    const Shape& shape = media->pixels.view().shape;
    const FeatureSource source{.pixels = media->id,
                               .n_frames = 1,
                               .height = shape[shape.rank() - 2],
                               .width = shape[shape.rank() - 1],
                               .tower = kThisModel,
                               .tenant = salt};
    out.push_back({.media = media, .feature = feature_id(source), .features = nullptr});
  }
  return out;
}

/// Slots of the last page that the answer's tokens can take.
int64_t unused_slots(const PageLayout& layout) {
  const int64_t last = layout.n_pages() - 1;
  return layout.is_closed(last) ? 0 : kPageTokens - layout.n_filled(last);
}

}  // namespace

Status Engine::check(const PreparedRequest& request) const {
  const RunnerLimits& limits = runner_->limits();
  const auto n_prompt = static_cast<int64_t>(request.ids.size());
  if (n_prompt == 0) return invalid_argument("the prompt is empty");
  if (n_prompt >= limits.context_tokens) {
    return out_of_range(fmt::format("the prompt has {} tokens, the context holds {}", n_prompt,
                                    limits.context_tokens));
  }
  for (size_t i = 0; i < request.ids.size(); ++i) {
    if (request.ids[i] < 0 || request.ids[i] >= limits.vocab_size) {
      return invalid_argument(fmt::format("prompt token {} is {}, outside the vocabulary of {}", i,
                                          request.ids[i], limits.vocab_size));
    }
  }
  for (const Span& span : request.spans) {
    if (span.media >= request.media.size() || span.position < 0 ||
        span.position + span.length > n_prompt ||
        span.length != request.media[span.media]->n_tokens) {
      return internal_error(
          fmt::format("span at {} of {} rows does not fit its media or the prompt", span.position,
                      span.length));
    }
  }
  if (!request.media.empty() && limits.n_encode_blocks == 0) {
    return internal_error("a text model was given a picture");
  }
  return Status::ok();
}

Result<SequencePages> Engine::make_pages(const PreparedRequest& request,
                                         const SubmitOptions& options,
                                         const std::vector<MediaUse>& media) {
  std::vector<MediaRun> runs;
  std::vector<MediaId> kept;
  for (const Span& span : request.spans) {
    runs.push_back({span.position, span.length, request.media[span.media]->modality});
    kept.push_back(media[span.media].feature);
  }
  TRIPTYCH_ASSIGN_OR_RETURN(PageLayout layout,
                            PageLayout::plan(static_cast<int64_t>(request.ids.size()), runs));
  std::optional<PrefixKey> root;
  if (config_.prefix_cache) {
    root = root_key({.model = kThisModel, .tenant = tenant_salt(options.tenant)});
  }
  return SequencePages(index_, std::move(layout), root, std::move(kept));
}

Result<uint64_t> Engine::submit(PreparedRequest request, const SubmitOptions& options,
                                std::optional<Timeline> begun) {
  TRIPTYCH_RETURN_IF_ERROR(failure_);
  TRIPTYCH_RETURN_IF_ERROR(check(request));
  const auto shared = std::make_shared<const PreparedRequest>(std::move(request));
  std::vector<MediaUse> media = uses_of(*shared, options.tenant);
  TRIPTYCH_ASSIGN_OR_RETURN(SequencePages pages, make_pages(*shared, options, media));
  const uint64_t seed = seeds_.next();
  TRIPTYCH_ASSIGN_OR_RETURN(Sampler sampler, make_sampler(*shared, seed, 0));
  auto sequence =
      std::make_unique<Sequence>(next_id_++, shared, options, std::move(pages), std::move(sampler));
  Sequence& s = *sequence;
  s.seed = seed;
  s.n_forks = static_cast<uint32_t>(shared->sampling.n - 1);
  s.media = std::move(media);
  s.timeline = begun ? std::move(*begun) : Timeline{{Stage::kWait, now_ms_()}, now_ms_()};
  note_stage(s);
  const int64_t free_pages = runner_->pages().n_pages() - s.kv.layout().n_pages();
  const int64_t room = std::min(runner_->limits().context_tokens - s.n_tokens(),
                                free_pages * kPageTokens + unused_slots(s.kv.layout()));
  const int64_t wanted = shared->sampling.max_tokens;
  s.max_new = wanted > 0 ? std::min(wanted, room) : room;
  s.usage = Usage{.prompt_tokens = s.n_tokens(), .prep_ms = shared->prep_ms};
  for (const Span& span : shared->spans) {
    s.usage.media_tokens += span.length;
    const Modality modality = shared->media[span.media]->modality;
    counts_.media_tokens[static_cast<size_t>(modality)] += span.length;
  }
  s.timeline.media_tokens = s.timeline.media_tokens_kept = s.usage.media_tokens;
  for (const auto& item : shared->media) {
    s.timeline.media_bytes += static_cast<uint64_t>(item->pixels.n_bytes());
  }
  sequences_[s.id] = std::move(sequence);
  return s.id;
}

Result<Snapshot> Engine::snapshot() {
  Snapshot out;
  out.now_ms = now_ms_();
  out.free_pages = runner_->pages().n_free();
  out.evictable_pages = runner_->pages().n_reclaimable();
  out.total_pages = runner_->pages().n_pages();
  out.media_bytes_cap = config_.media.in_work_bytes;
  out.fairness = fairness_;
  const PageKeys coming = pages_coming();
  for (const auto& [id, s] : sequences_) {
    TRIPTYCH_ASSIGN_OR_RETURN(SequenceState state, describe(*s));
    if (!s->running && waits_for(*s, state.n_pages_held, coming)) continue;
    if (s->running) {
      for (const MediaState& media : state.media) {
        if (media.end() > state.n_cached) out.media_bytes_in_use += media.bytes;
      }
    }
    (s->running ? out.running : out.waiting).push_back(std::move(state));
  }
  return out;
}

/// Pages that running sequences are about to compute and publish.
Engine::PageKeys Engine::pages_coming() const {
  PageKeys out;
  for (const auto& [id, s] : sequences_) {
    const PrefixChain* chain = s->kv.chain();
    if (!s->running || chain == nullptr) continue;
    for (int64_t i = s->kv.n_published(); i < chain->size(); ++i) out.insert(chain->key(i));
  }
  return out;
}

/// Whether the page behind those that a waiting sequence would find is being computed by another:
/// computing it a second time would take longer than waiting for it.
bool Engine::waits_for(const Sequence& sequence, int64_t n_found, const PageKeys& coming) const {
  const PrefixChain* chain = sequence.kv.chain();
  return chain != nullptr && n_found < chain->size() && coming.contains(chain->key(n_found));
}

Result<SequenceState> Engine::describe(Sequence& sequence) {
  Sequence& s = sequence;
  const PagePool& pool = runner_->pages();
  SequenceState out;
  out.id = s.id;
  out.service_class = s.options.service_class;
  out.tenant = s.options.tenant;
  out.arrival_ms = s.arrival_ms();
  out.expires_ms = s.expires_ms();
  out.first_token_ms = s.first_token_ms;
  out.last_token_ms = s.last_token_ms;
  out.n_tokens = s.n_tokens();
  out.n_prompt = s.n_prompt();
  out.max_new = s.max_new;
  out.n_preempted = s.usage.preemptions;
  if (s.running) {
    out.n_cached = s.n_cached();
    out.n_pages_held = static_cast<int64_t>(s.kv.pages().size());
    for (const int32_t page : s.kv.pages()) {
      out.n_pages_own += pool.references(page) == (pool.published(page) ? 2 : 1);
    }
  } else {
    TRIPTYCH_ASSIGN_OR_RETURN(out.n_cached, s.kv.n_cached(s.ids));
    out.n_pages_held = s.kv.layout().pages_for(out.n_cached);
    for (int64_t i = 0; i < out.n_pages_held; ++i) {
      const int32_t page = index_.entries().at(s.kv.chain()->key(i)).page;
      out.n_pages_lent_idle += pool.references(page) == 1;
    }
  }
  describe_media(s, out);
  return out;
}

void Engine::describe_media(const Sequence& sequence, SequenceState& state) const {
  const RunnerLimits& limits = runner_->limits();
  for (const Span& span : sequence.request->spans) {
    const MediaUse& use = sequence.media[span.media];
    MediaState media{.position = span.position, .length = span.length};
    media.item = item_number(use.feature);
    media.encoded = sequence.running ? use.features != nullptr : encoder_.has_features(use);
    media.blocks_left = media.encoded ? 0 : encoder_.blocks_left(use);
    media.blocks_total = limits.n_encode_blocks;
    media.block_gflop = limits.encode_block_flops * 1e-9;
    media.bytes = media.encoded
                      ? 0
                      : limits.encode_bytes + static_cast<uint64_t>(use.media->pixels.n_bytes());
    state.media.push_back(media);
  }
}

Status Engine::check_invariants() const {
  std::vector<const SequencePages*> tables;
  for (const auto& [id, s] : sequences_) tables.push_back(&s->kv);
  TRIPTYCH_RETURN_IF_ERROR(triptych::check_invariants(runner_->pages(), index_, tables));
  return encoder_.cache().check_invariants();
}

}  // namespace triptych
