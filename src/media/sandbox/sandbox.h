#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "media/image/recipe.h"

namespace triptych {

namespace sandbox {
class WorkerPool;
class Zygote;
}  // namespace sandbox

struct SandboxOptions {
  int workers = 2;  ///< pictures that are decoded at once
  /// What a worker may map above what it has before its first picture and what the picture itself
  /// takes (file, decoded pixels, values), which its header says.
  uint64_t memory_bytes = uint64_t{256} << 20;
  /// Processor time that a picture may take, and more of it for each megapixel.
  double time_ms = 2000;
  double time_ms_per_megapixel = 50;
  int64_t pictures_per_worker = 1000;  ///< after as many a worker makes room for a new one
  /// What is done with a picture; tests put in worse.
  Result<PixelTensor> (*work)(std::span<const std::byte> bytes, const ImageRecipe& recipe,
                              const DecodeOptions& options, ThreadPool& pool) = &preprocess_image;
};

/// Decodes and preprocesses pictures in processes of their own, which can compute and do nothing
/// else: whoever takes one over with a hostile file has no network, no files and no other process,
/// and loses it when the file takes too long or too much. What a worker says is not trusted: sizes
/// come from the header as it is read here, and pixels are copied out of memory whose size is
/// sealed.
///
/// Thread-safe. Workers are forked by a process of its own (Zygote); a thread replaces those that
/// die between two pictures.
class Sandbox {
 public:
  /// To be called before the program has threads. Warns when the system refuses to filter system
  /// calls: workers are processes with limits of memory and time then, and no more.
  static Result<std::shared_ptr<Sandbox>> start(const SandboxOptions& options = {});
  /// Ends all its processes. Nobody may be in preprocess() any more.
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  /// As preprocess_image(), the same values and errors; writes them to `values`, which has the size
  /// that plan_image() gives. Waits for a free worker. Errors of its own: kDataLoss when the
  /// decoder crashed on the picture, kOutOfRange when it took more time or memory than it may,
  /// kUnavailable when it was killed from outside or cannot be started.
  Status preprocess(std::span<const std::byte> bytes, const ImageRecipe& recipe,
                    const DecodeOptions& options, std::span<float> values);

  int n_workers() const { return options_.workers; }
  /// Whether workers are behind a filter of system calls.
  bool is_filtered() const { return filtered_; }
  /// The process ids of those that live.
  std::vector<pid_t> worker_pids() const;

 private:
  explicit Sandbox(const SandboxOptions& options);
  Status begin();

  const SandboxOptions options_;
  bool filtered_ = false;
  std::unique_ptr<sandbox::Zygote> zygote_;
  std::unique_ptr<sandbox::WorkerPool> pool_;  // ends before the zygote
};

}  // namespace triptych
