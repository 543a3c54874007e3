#include "engine/media_encoder.h"

namespace triptych {

void MediaEncoder::want(uint64_t sequence, MediaUse& use) {
  if (use.features != nullptr) return;
  if (const auto job = jobs_.find(use.feature);
      job != jobs_.end() && job->second.owner == sequence) {
    return;
  }
  const RunnerLimits& limits = runner_->limits();
  const EncodeUnit unit{
      .id = use.feature,
      .n_bytes = static_cast<uint64_t>(use.media->n_tokens * limits.hidden_size) * sizeof(float),
      .cost = limits.encode_block_flops * static_cast<double>(limits.n_encode_blocks)};
  EncoderLookup found = cache_.find_or_begin(unit, use.media->modality, sequence);
  if (found.state == EncoderState::kHit) {
    use.features = std::move(found.features);
  } else if (found.state == EncoderState::kBegin) {
    Job& job = jobs_[use.feature];  // what another left unfinished goes on
    job.owner = sequence;
    if (job.work.media == nullptr) job.work.media = use.media;
  }
}

int64_t MediaEncoder::blocks_left(const MediaUse& use) const {
  if (has_features(use)) return 0;
  const int64_t all = runner_->limits().n_encode_blocks;
  const auto job = jobs_.find(use.feature);
  return job == jobs_.end() ? all : all - job->second.work.state.next_block;
}

Result<MediaFeatures> MediaEncoder::run(const MediaId& feature, int64_t n_blocks) {
  const auto job = jobs_.find(feature);
  if (job == jobs_.end()) return internal_error("a media item is run that nobody asked for");
  Status status = runner_->encode(job->second.work, n_blocks);
  if (!status.is_ok()) {
    jobs_.erase(job);
    cache_.fail(feature);
    return status;
  }
  if (!job->second.work.done) return MediaFeatures();
  Tensor embeddings = std::move(job->second.work.embeddings);
  jobs_.erase(job);
  TRIPTYCH_ASSIGN_OR_RETURN(EncoderCache::Finished finished,
                            cache_.finish(feature, std::move(embeddings)));
  return finished.features;
}

bool MediaEncoder::leave(uint64_t sequence, const MediaUse& use) {
  const auto job = jobs_.find(use.feature);
  if (job == jobs_.end()) return false;
  if (job->second.owner != sequence) {
    cache_.leave(use.feature, sequence);
    return false;
  }
  if (cache_.fail(use.feature).empty()) {
    jobs_.erase(job);
    return false;
  }
  job->second.owner = 0;
  return true;
}

}  // namespace triptych
