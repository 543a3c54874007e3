#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/sampler.h"

namespace triptych {

/// A thread that works out the masks of grammars while the caller runs the step whose logits they
/// are for. It starts with the first grammar.
class MaskWorker {
 public:
  MaskWorker() = default;
  ~MaskWorker();
  MaskWorker(const MaskWorker&) = delete;
  MaskWorker& operator=(const MaskWorker&) = delete;

  /// Prepares the masks of these samplers' next tokens. Nobody else touches the samplers, and
  /// begin() is not called again, until wait() has returned.
  void begin(std::vector<Sampler*> samplers);
  void wait();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Sampler*> samplers_;  ///< whose masks are still to do
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace triptych
