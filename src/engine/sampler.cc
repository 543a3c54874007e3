#include "engine/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/logprobs.h"
#include "engine/token_draw.h"

namespace triptych {
namespace {

/// What one pass over logits finds: the largest, minus infinity when there is none, and whether one
/// of them is NaN or plus infinity.
struct Scan {
  float largest = -INFINITY;
  bool broken = false;
};

/// Lanes that do not wait for each other, which compilers turn into vectors.
Scan scan(std::span<const float> logits) {
  constexpr size_t kLanes = 16;
  std::array<float, kLanes> largest;
  std::array<uint32_t, kLanes> broken{};
  largest.fill(-INFINITY);
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float logit = logits[i + lane];
      largest[lane] = logit > largest[lane] ? logit : largest[lane];
      broken[lane] |= logit < INFINITY ? 0u : 1u;
    }
  }
  Scan out;
  for (; i < logits.size(); ++i) {
    out.largest = std::max(out.largest, logits[i]);
    out.broken = out.broken || !(logits[i] < INFINITY);
  }
  for (size_t lane = 0; lane < kLanes; ++lane) {
    out.largest = std::max(out.largest, largest[lane]);
    out.broken = out.broken || broken[lane] != 0;
  }
  return out;
}

/// The first id of that logit; -1 for minus infinity.
int32_t first_id(std::span<const float> logits, float logit) {
  if (logit == -INFINITY) return -1;
  return static_cast<int32_t>(std::find(logits.begin(), logits.end(), logit) - logits.begin());
}

}  // namespace

Sampler::Sampler(SamplingParams params, SamplerSetup setup)
    : params_(std::move(params)),
      end_ids_(params_.stop_token_ids),
      seed_(params_.seed.value_or(setup.seed)),
      stream_(setup.stream),
      n_known_(static_cast<size_t>(std::max<int64_t>(0, setup.n_known))),
      constraint_(std::move(setup.constraint)) {
  if (params_.ignore_eos) return;
  end_ids_.insert(end_ids_.end(), setup.eos_ids.begin(), setup.eos_ids.end());
}

void Sampler::observe_prompt(std::span<const int32_t> ids) {
  if (params_.repetition_penalty != 1) counts_.add_prompt(ids);
}

Status Sampler::accept(int32_t token) {
  if (constraint_ != nullptr) TRIPTYCH_RETURN_IF_ERROR(constraint_->accept(token));
  counts_.add_answer(token);
  ++n_accepted_;
  mask_ready_ = false;
  return Status::ok();
}

void Sampler::prepare_mask() {
  if (constraint_ == nullptr || mask_ready_) return;
  mask_.resize(constraint_->mask_words());
  mask_status_ = constraint_->allowed(mask_);
  mask_ready_ = true;
}

bool Sampler::ends(int32_t token) const {
  return std::find(end_ids_.begin(), end_ids_.end(), token) != end_ids_.end();
}

/// Whether the logits to draw from are not the model's own.
bool Sampler::adjusts() const {
  return !params_.logit_bias.empty() || params_.repetition_penalty != 1 ||
         params_.frequency_penalty != 0 || params_.presence_penalty != 0 || holds_ends() ||
         constraint_ != nullptr;
}

/// The steps in front of the first bar, on a copy in `scratch`.
Result<std::span<const float>> Sampler::adjust(std::span<const float> logits, bool hold_ends,
                                               SamplerScratch& scratch) {
  scratch.logits.assign(logits.begin(), logits.end());
  const std::span<float> out(scratch.logits);
  add_bias(out, params_.logit_bias);
  if (params_.repetition_penalty != 1) {
    penalise_repetition(out, counts_, params_.repetition_penalty);
  }
  if (params_.frequency_penalty != 0 || params_.presence_penalty != 0) {
    penalise_answer(out, counts_, params_.frequency_penalty, params_.presence_penalty);
  }
  if (hold_ends) forbid(out, end_ids_);
  if (constraint_ != nullptr) {
    prepare_mask();
    TRIPTYCH_RETURN_IF_ERROR(mask_status_);
    keep_allowed(out, mask_);
  }
  return std::span<const float>(out);
}

Result<DrawnToken> Sampler::sample(std::span<const float> logits, SamplerScratch& scratch) {
  logits = logits.first(std::min(logits.size(), n_known_));
  Scan found = scan(logits);
  if (found.broken) {
    return internal_error("the model gave a logit that is infinite or not a number");
  }
  if (found.largest == -INFINITY) return internal_error("the model gave no finite logit");
  std::span<const float> adjusted = logits;
  if (adjusts()) {
    TRIPTYCH_ASSIGN_OR_RETURN(adjusted, adjust(logits, holds_ends(), scratch));
    found = scan(adjusted);
  }
  int32_t best = first_id(adjusted, found.largest);
  if (best < 0 && holds_ends()) {
    // Nothing but the end may come, by the grammar or by the model: min_tokens gives way.
    TRIPTYCH_ASSIGN_OR_RETURN(adjusted, adjust(logits, false, scratch));
    best = first_id(adjusted, scan(adjusted).largest);
  }
  if (best < 0) {
    return invalid_argument(
        "the grammar allows only tokens that the model cannot give here: it cannot be followed");
  }
  DrawnToken out;
  out.token = params_.temperature == 0 ? best : draw(adjusted, best, scratch);
  if (params_.logprobs) {
    out.logprobs = token_logprobs(logits, out.token, params_.top_logprobs, scratch);
  }
  return out;
}

/// The steps behind the first bar.
int32_t Sampler::draw(std::span<const float> logits, int32_t best, SamplerScratch& scratch) const {
  make_candidates(logits, logits[static_cast<size_t>(best)], params_.temperature, params_.top_k,
                  scratch);
  if (params_.top_p < 1) keep_top_p(params_.top_p, scratch);
  if (params_.min_p > 0) keep_min_p(params_.min_p, scratch);
  if (params_.typical_p < 1) keep_typical(params_.typical_p, scratch);
  return draw_candidate(token_uniform(seed_, stream_, static_cast<uint64_t>(n_accepted_)),
                        scratch.candidates);
}

}  // namespace triptych
