// Several answers to one prompt: they share its pages and part where their tokens differ.
#include <algorithm>
#include <cstring>

#include "engine/engine.h"

namespace triptych {
namespace {

void copy_page(std::span<const std::byte> from, std::span<std::byte> to) {
  std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace

Result<Sampler> Engine::make_sampler(const PreparedRequest& request, uint64_t seed,
                                     uint32_t choice) const {
  SamplerSetup setup{.eos_ids = runner_->limits().eos_ids,
                     .seed = seed,
                     .stream = choice,
                     .n_known = request.n_known_tokens};
  if (request.constraint != nullptr) {
    TRIPTYCH_ASSIGN_OR_RETURN(setup.constraint, request.constraint->start());
  }
  Sampler sampler(request.sampling, std::move(setup));
  sampler.observe_prompt(request.ids);
  return sampler;
}

/// Starts the other answers to a prompt that has just been computed. Those that come back draw from
/// the same logits now; one for which there is no room waits and computes what the prefix cache has
/// lost by then.
std::vector<Sequence*> Engine::fork(Sequence& sequence, Events& events) {
  Sequence& s = sequence;
  std::vector<Sequence*> out;
  int64_t n_running = std::count_if(sequences_.begin(), sequences_.end(),
                                    [](const auto& entry) { return entry.second->running; });
  for (; s.n_forks > 0; --s.n_forks) {
    const uint32_t choice = s.n_forks;
    Result<Sampler> sampler = make_sampler(*s.request, s.seed, choice);
    const bool room = n_running < runner_->limits().max_sequences;
    Result<SequencePages> pages = room ? s.kv.fork(&copy_page) : resource_exhausted("no slot");
    const bool running = pages.is_ok();
    if (!running) pages = make_pages(*s.request, s.options, s.media);
    if (!sampler.is_ok() || !pages.is_ok()) {
      TokenEvent event{.finish = FinishReason::kError,
                       .error = sampler.is_ok() ? pages.status() : sampler.status()};
      event.sequence = s.group;
      event.choice = choice;
      events.push_back({std::move(event), s.usage});
      continue;
    }
    auto other = std::make_unique<Sequence>(next_id_++, s.request, s.options, std::move(*pages),
                                            std::move(*sampler));
    other->group = s.group;
    other->choice = choice;
    other->media = s.media;
    for (MediaUse& use : other->media) use.features = nullptr;
    other->max_new = s.max_new;
    other->running = running;
    other->usage = s.usage;
    other->timeline = s.timeline;
    note_stage(*other);
    if (running) {
      out.push_back(other.get());
      ++n_running;
    }
    sequences_[other->id] = std::move(other);
  }
  return out;
}

}  // namespace triptych
