#include "engine/mask_worker.h"

namespace triptych {

MaskWorker::~MaskWorker() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void MaskWorker::begin(std::vector<Sampler*> samplers) {
  if (samplers.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    samplers_ = std::move(samplers);
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  changed_.notify_all();
}

void MaskWorker::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return samplers_.empty(); });
}

void MaskWorker::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !samplers_.empty(); });
    if (stopping_) return;
    lock.unlock();
    for (Sampler* sampler : samplers_) sampler->prepare_mask();
    lock.lock();
    samplers_.clear();
    changed_.notify_all();
  }
}

}  // namespace triptych
